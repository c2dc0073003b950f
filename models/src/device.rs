//! What computes where: our kernels on a CPU, candle's operations everywhere else.
//!
//! Operations of ours are written for f32 on a CPU. Each has beside it the same made of candle's
//! own operations, which run on any device and in half precision. [`has_kernels`] is the one place
//! where that is decided. [`Standing`] lets a CPU stand in for a device without kernels, so that
//! what a card will compute is held against what the CPU computes on machines without a card.

use std::cell::Cell;
use std::sync::Arc;

use candle_core::{DType, Result, Tensor};

use crate::model::StagedModel;
use crate::tokens::Tokenizer;

thread_local! {
    /// This thread computes as a device without kernels of ours would.
    static STANDS_IN: Cell<bool> = const { Cell::new(false) };
}

/// A network whose stages and heads compute as on a device without kernels of ours.
pub(crate) struct Standing(pub(crate) Arc<dyn StagedModel>);

/// Whether operations of ours can compute with `x`.
pub(crate) fn has_kernels(x: &Tensor) -> bool {
    x.device().is_cpu() && x.dtype() == DType::F32 && !STANDS_IN.get()
}

/// Runs `compute` without kernels of ours.
fn standing_in<T>(compute: impl FnOnce() -> T) -> T {
    /// Back as it was, also when `compute` panics.
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            STANDS_IN.set(self.0);
        }
    }
    let _back = Back(STANDS_IN.replace(true));
    compute()
}

impl StagedModel for Standing {
    fn stages(&self) -> usize {
        self.0.stages()
    }

    fn exits(&self) -> &[usize] {
        self.0.exits()
    }

    fn classes(&self) -> usize {
        self.0.classes()
    }

    fn answer_len(&self) -> usize {
        self.0.answer_len()
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        standing_in(|| self.0.run_stage(stage, x))
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        standing_in(|| self.0.logits(exit, x))
    }

    fn head(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        standing_in(|| self.0.head(exit, x))
    }

    fn join(&self, parts: &[Tensor]) -> Result<Tensor> {
        standing_in(|| self.0.join(parts))
    }

    fn tokenizer(&self) -> Option<&Tokenizer> {
        self.0.tokenizer()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;

    use super::*;

    #[test]
    fn ours_are_for_f32_on_a_cpu_and_for_nobody_who_stands_in() {
        let x = Tensor::zeros((2, 2), DType::F32, &Device::Cpu).unwrap();
        assert!(has_kernels(&x));
        assert!(!has_kernels(&x.to_dtype(DType::F16).unwrap()));
        assert!(!standing_in(|| has_kernels(&x)));
        let caught = std::panic::catch_unwind(|| standing_in(|| panic!("as a bug would")));
        assert!(caught.is_err() && has_kernels(&x), "back as it was");
    }
}
