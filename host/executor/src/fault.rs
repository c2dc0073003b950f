//! What a device's error means: out of memory, lost, or neither.
//!
//! CUDA's libraries name their errors, and candle passes the names on in its messages, from
//! whichever library and through however many layers. So messages are what is read here: no type of
//! CUDA is needed, and every machine can test it.

/// What happened to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no memory left for this; with less on it, it might.
    OutOfMemory,
    /// Nothing will run on it until this process has ended: CUDA keeps such an error and returns
    /// it from every call after it.
    Lost,
}

/// Names of errors after which less on the card may help.
const OUT_OF_MEMORY: [&str; 7] = [
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CURAND_STATUS_ALLOCATION_FAILED",
    "NVRTC_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
];

/// Names of errors that stay: of the context, which every worker on the card shares, or of the
/// card itself.
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

// === impl Fault ===

impl Fault {
    /// What a message tells of its device; none where it tells nothing, as when a shape does not
    /// fit.
    pub fn of(message: &str) -> Option<Self> {
        let words = message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        // A message may hold several: what is lost cannot run out of memory any more.
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

    /// As cudarc 0.19 writes its errors, and candle passes them on.
    #[test]
    fn errors_are_known_by_their_names() {
        let said = [
            (
                "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")",
                Some(Fault::OutOfMemory),
            ),
            (
                "CublasError(CUBLAS_STATUS_ALLOC_FAILED)",
                Some(Fault::OutOfMemory),
            ),
            (
                "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access was encountered\")",
                Some(Fault::Lost),
            ),
            (
                "DriverError(CUDA_ERROR_ECC_UNCORRECTABLE, \"uncorrectable ECC error encountered\") when loading unary",
                Some(Fault::Lost),
            ),
            (
                "DriverError(CUDA_ERROR_INVALID_VALUE, \"invalid argument\")",
                None,
            ),
            ("shape mismatch in matmul, lhs: [1, 2], rhs: [3, 4]", None),
            ("", None),
        ];
        for (message, fault) in said {
            assert_eq!(Fault::of(message), fault, "{message}");
        }
    }

    #[test]
    fn a_name_inside_another_is_not_that_name() {
        assert_eq!(Fault::of("CUDA_ERROR_OUT_OF_MEMORY_ISH"), None);
        assert_eq!(Fault::of("MY_CUDA_ERROR_UNKNOWN"), None);
    }

    #[test]
    fn what_is_lost_is_lost_whatever_else_is_said() {
        let both = "CUDA_ERROR_OUT_OF_MEMORY, then CUDA_ERROR_LAUNCH_FAILED";
        assert_eq!(Fault::of(both), Some(Fault::Lost));
    }
}
