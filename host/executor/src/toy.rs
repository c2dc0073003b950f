//! A model for unit tests, which never runs.

use candle_core::{Result, Tensor};
use switchyard_models::StagedModel;

/// Two stages and one exit; its tensors pass through unchanged.
pub(crate) struct ToyModel;

impl StagedModel for ToyModel {
    fn stages(&self) -> usize {
        2
    }

    fn exits(&self) -> &[usize] {
        &[2]
    }

    fn classes(&self) -> usize {
        2
    }

    fn run_stage(&self, _stage: usize, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }

    fn logits(&self, _exit: usize, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}
