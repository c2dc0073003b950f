//! The meaning of a device's error: out of memory, lost, or neither.
//!
//! CUDA's libraries name their errors, and candle passes the names on in its messages, from every
//! library and through every layer. So this reads messages instead of CUDA's types, and every
//! machine can test it.

/// A fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFault {
    /// It has too little free memory; with less on it the same work may succeed.
    OutOfMemory,
    /// Nothing will run on it until this process has ended: CUDA keeps such an error and returns
    /// it from every later call.
    Lost,
}

/// Names of errors after which less on the GPU may help.
const OUT_OF_MEMORY: [&str; 7] = [
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CURAND_STATUS_ALLOCATION_FAILED",
    "NVRTC_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
];

/// Names of errors that stay: of the context, which all workers on the GPU share, or of the GPU
/// itself.
const LOST: [&str; 22] = [
    "CUDA_ERROR_DEINITIALIZED",
    "CUDA_ERROR_NO_DEVICE",
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_INVALID_CONTEXT",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_NVLINK_UNCORRECTABLE",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_TIMEOUT",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    "CUDA_ERROR_INVALID_PC",
    "CUDA_ERROR_TENSOR_MEMORY_LEAK",
    "CUDA_ERROR_CONTAINED",
    "CUDA_ERROR_EXTERNAL_DEVICE",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "CUDA_ERROR_MPS_CONNECTION_FAILED",
    "CUDA_ERROR_UNKNOWN",
];

// === impl DeviceFault ===

impl DeviceFault {
    /// The fault that a message names; `None` if it names none, such as for shapes that do not fit.
    pub fn of(message: &str) -> Option<Self> {
        let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        // A message may hold several names. A lost device stays lost, so `Lost` wins.
        let mut worst = None;
        for word in words {
            if LOST.contains(&word) {
                return Some(Self::Lost);
            }
            if OUT_OF_MEMORY.contains(&word) {
                worst = Some(Self::OutOfMemory);
            }
        }
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the words of cudarc 0.19, which candle passes on.
    #[test]
    fn errors_are_known_by_their_names() {
        let messages = [
            (
                "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")",
                Some(DeviceFault::OutOfMemory),
            ),
            (
                "CublasError(CUBLAS_STATUS_ALLOC_FAILED)",
                Some(DeviceFault::OutOfMemory),
            ),
            (
                "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access was encountered\")",
                Some(DeviceFault::Lost),
            ),
            (
                "DriverError(CUDA_ERROR_ECC_UNCORRECTABLE, \"uncorrectable ECC error encountered\") when loading unary",
                Some(DeviceFault::Lost),
            ),
            (
                "DriverError(CUDA_ERROR_INVALID_VALUE, \"invalid argument\")",
                None,
            ),
            ("shape mismatch in matmul, lhs: [1, 2], rhs: [3, 4]", None),
            ("", None),
        ];
        for (message, fault) in messages {
            assert_eq!(DeviceFault::of(message), fault, "{message}");
        }
    }

    #[test]
    fn a_name_inside_another_is_not_that_name() {
        assert_eq!(DeviceFault::of("CUDA_ERROR_OUT_OF_MEMORY_ISH"), None);
        assert_eq!(DeviceFault::of("MY_CUDA_ERROR_UNKNOWN"), None);
    }

    #[test]
    fn a_message_with_both_names_means_lost() {
        let both = "CUDA_ERROR_OUT_OF_MEMORY, then CUDA_ERROR_LAUNCH_FAILED";
        assert_eq!(DeviceFault::of(both), Some(DeviceFault::Lost));
    }
}
