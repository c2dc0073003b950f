//! Whether the kernels of this project compute, or candle's operations.
//!
//! The kernels are for f32 on a CPU. Each operation has a twin made of candle's own operations,
//! which run on any device and in half precision. [`has_kernels`] is the only function that
//! decides. A thread may stand in for a device without kernels, so that the operations of a GPU are
//! tested on machines without one.

use std::cell::Cell;

use candle_core::{DType, Tensor};

thread_local! {
    /// This thread computes as a device without kernels would.
    static STANDS_IN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the kernels of this project can compute with `x`.
pub(crate) fn has_kernels(x: &Tensor) -> bool {
    x.device().is_cpu() && x.dtype() == DType::F32 && !STANDS_IN.get()
}

/// Runs `compute` without the kernels of this project.
pub(crate) fn standing_in<T>(compute: impl FnOnce() -> T) -> T {
    /// Restores the flag, also when `compute` panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            STANDS_IN.set(self.0);
        }
    }
    let _restore = Restore(STANDS_IN.replace(true));
    compute()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;

    use super::*;

    #[test]
    fn kernels_are_for_f32_on_a_cpu_that_stands_in_for_no_other_device() {
        let x = Tensor::zeros((2, 2), DType::F32, &Device::Cpu).unwrap();
        assert!(has_kernels(&x));
        assert!(!has_kernels(&x.to_dtype(DType::F16).unwrap()));
        assert!(!standing_in(|| has_kernels(&x)));
        let caught = std::panic::catch_unwind(|| standing_in(|| panic!("as a bug would")));
        assert!(caught.is_err() && has_kernels(&x), "restored");
    }
}
