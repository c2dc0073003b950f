//! A network that computes as on a device without the kernels of this project.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{Result, Tensor};

use super::staged::StagedModel;
use super::tokens::Tokenizer;
use crate::ops::device::standing_in;

/// Runs the stages and heads of a network as on a device without kernels.
pub(crate) struct StandIn(pub(crate) Arc<dyn StagedModel>);

impl StagedModel for StandIn {
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

    fn run_stages(&self, stages: Range<usize>, x: &Tensor) -> Result<Tensor> {
        standing_in(|| self.0.run_stages(stages, x))
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

    fn typical_tokens(&self) -> usize {
        self.0.typical_tokens()
    }

    fn tokenizer(&self) -> Option<&Tokenizer> {
        self.0.tokenizer()
    }
}
