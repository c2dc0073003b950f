//! The interface of every network: a chain of stages with exits.

use std::ops::Range;

use candle_core::{DType, Result, Tensor};

use super::graph::Graph;
use super::tokens::Tokenizer;

/// A network cut into stages, with an answer possible after some of them.
///
/// Early exit, model slicing and preemption at layer boundaries are one mechanism: run stages `[i,
/// j)`, keep the activations, go on later. Implementations hold no mutable state, so one model
/// serves any number of threads.
pub trait StagedModel: Send + Sync {
    /// Number of stages; at least 1.
    fn stages(&self) -> usize;

    /// For each exit, in order of depth, how many stages must have run before its head.
    ///
    /// Strictly increasing, the last one equal to [`stages`](Self::stages).
    fn exits(&self) -> &[usize];

    /// Number of classes that a head tells apart; 1 for a head that embeds.
    fn classes(&self) -> usize;

    /// Values of one answer: one per class, or those of an embedding.
    fn answer_len(&self) -> usize {
        self.classes()
    }

    /// Runs one stage on a batch.
    ///
    /// Stage 0 takes `[batch, samples]` f32, or token ids if there is a
    /// [`tokenizer`](Self::tokenizer); every other stage takes the result of the stage before it.
    /// Batches may be stacked and split along dimension 0 between stages.
    ///
    /// # Errors
    /// The stage does not exist, or the shape, type or device of `x` does not fit it.
    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor>;

    /// Runs one stage or more, one after the other; the result is that of [`run_stage`](Self::run_stage) for
    /// each, in the same bits. A network of short stages keeps the activations between them in its own memory.
    ///
    /// # Errors
    /// As [`run_stage`](Self::run_stage).
    fn run_stages(&self, stages: Range<usize>, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for stage in stages {
            x = self.run_stage(stage, &x)?;
        }
        Ok(x)
    }

    /// Unnormalised class scores `[batch, classes]` of an exit.
    ///
    /// # Errors
    /// The exit does not exist, or `x` does not come from the stage before it.
    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor>;

    /// Class probabilities `[batch, classes]` of an exit, f32; each row sums to 1.
    ///
    /// # Errors
    /// As [`logits`](Self::logits).
    fn head(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::softmax_last_dim(&self.logits(exit, x)?.to_dtype(DType::F32)?)
    }

    /// Joins activations that left the same stage in different batches into one batch.
    ///
    /// # Errors
    /// Their shapes cannot be made equal.
    fn join(&self, parts: &[Tensor]) -> Result<Tensor> {
        Tensor::cat(parts, 0)
    }

    /// Makes the input of stage 0 from text, for a network that takes text.
    fn tokenizer(&self) -> Option<&Tokenizer> {
        None
    }

    /// Tokens of a common text, at which latencies are measured.
    fn typical_tokens(&self) -> usize {
        1
    }

    /// The network as one of named tensors, if it is one. Batches of requests go to it then, and not
    /// to stage 0 and the head.
    fn graph(&self) -> Option<&dyn Graph> {
        None
    }

    /// Runs a whole batch `[batch, samples]` to an exit and returns its probabilities.
    ///
    /// # Errors
    /// As [`run_stage`](Self::run_stage) and [`head`](Self::head).
    fn forward(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(&stages) = self.exits().get(exit) else {
            return no_exit(exit, self.exits().len());
        };
        self.head(exit, &self.run_stages(0..stages, x)?)
    }
}

/// The error that a network of `stages` stages has no stage `stage`.
pub(crate) fn no_stage<T>(stage: usize, stages: usize) -> Result<T> {
    candle_core::bail!("stage {stage} of {stages}")
}

/// The error that a network of `count` stages does not have all of `stages`.
pub(crate) fn no_stages<T>(stages: &Range<usize>, count: usize) -> Result<T> {
    no_stage(stages.end.saturating_sub(1), count)
}

/// The error that a network of `exits` exits has no exit `exit`.
pub(crate) fn no_exit<T>(exit: usize, exits: usize) -> Result<T> {
    candle_core::bail!("exit {exit} of {exits}")
}

/// Refuses every exit of a network of one exit but the first.
pub(crate) fn check_only_exit(exit: usize) -> Result<()> {
    match exit {
        0 => Ok(()),
        _ => no_exit(exit, 1),
    }
}
