//! What every architecture offers: a chain of stages with exits.

use candle_core::{DType, Result, Tensor};
use rayon::prelude::*;

use crate::flow::Mode;
use crate::tokens::Tokenizer;

/// A network cut into stages, with an answer possible after some of them.
///
/// Early exit, model slicing and preemption at layer boundaries are one mechanism: run stages
/// `[i, j)`, keep the activations, go on later. Implementations hold no mutable state, so one
/// model serves any number of threads.
pub trait StagedModel: Send + Sync {
    /// Number of stages; at least 1.
    fn stages(&self) -> usize;

    /// For each exit, in order of depth, how many stages must have run before its head.
    ///
    /// Strictly increasing, the last one equal to [`stages`](Self::stages).
    fn exits(&self) -> &[usize];

    /// Number of classes that a head tells apart; 1 for a head that embeds.
    fn classes(&self) -> usize;

    /// Numbers of one answer: one per class, or those of an embedding.
    fn answer_len(&self) -> usize {
        self.classes()
    }

    /// Runs one stage on a batch.
    ///
    /// Stage 0 takes `[batch, samples]` f32, or token ids where there is a
    /// [`tokenizer`](Self::tokenizer); every other stage takes what the stage before it
    /// returned. Batches may be stacked and split along dimension 0 between stages.
    ///
    /// # Errors
    /// The stage does not exist, or the shape, type or device of `x` does not fit it.
    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor>;

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
    /// Their shapes differ in what cannot be reconciled.
    fn join(&self, parts: &[Tensor]) -> Result<Tensor> {
        Tensor::cat(parts, 0)
    }

    /// What makes the input of stage 0 from text, where the network takes text.
    fn tokenizer(&self) -> Option<&Tokenizer> {
        None
    }

    /// Runs a whole batch `[batch, samples]` to an exit and returns its probabilities.
    ///
    /// # Errors
    /// As [`run_stage`](Self::run_stage) and [`head`](Self::head).
    fn forward(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(&stages) = self.exits().get(exit) else {
            candle_core::bail!("exit {exit} of {}", self.exits().len());
        };
        let mut x = x.clone();
        for stage in 0..stages {
            x = self.run_stage(stage, &x)?;
        }
        self.head(exit, &x)
    }
}

/// Checks that a batch has the shape `[batch, samples]` and lifts it to `[batch, samples, 1]`.
pub(crate) fn lift_input(x: &Tensor, samples: usize) -> Result<Tensor> {
    let (_, width) = x.dims2()?;
    if width != samples {
        candle_core::bail!("input has {width} samples, the model takes {samples}");
    }
    x.unsqueeze(2)
}

/// Activations that one pass over a stage may hold on a CPU, in numbers.
///
/// Below candle's threshold for its process-wide spinning thread pool, and few enough that the
/// windows of a convolution stay in the second-level cache.
const SLICE_ACTIVATIONS: usize = 64 * 1024 - 1;

/// The same for packed layers, which cut their positions into blocks themselves: more inputs at
/// once share the weights that are read. 4 MiB.
const PACKED_SLICE_ACTIVATIONS: usize = 1 << 20;

/// Runs `stage` on slices of a batch and stacks the results; in one go on anything but a CPU.
///
/// `width` is the largest number of activations per input.
pub(crate) fn in_slices(
    x: &Tensor,
    width: usize,
    stage: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let batch = x.dim(0)?;
    let slice = (SLICE_ACTIVATIONS / width.max(1)).max(1);
    if batch <= slice || !x.device().is_cpu() || x.dtype() == DType::F16 {
        return stage(x);
    }
    let slices = (0..batch)
        .step_by(slice)
        .map(|from| stage(&x.narrow(0, from, slice.min(batch - from))?))
        .collect::<Result<Vec<_>>>()?;
    Tensor::cat(&slices, 0)
}

/// As [`in_slices`]; packed, slices are shared among the threads of the pool that this runs in.
pub(crate) fn in_shares(
    x: &Tensor,
    width: usize,
    mode: Mode,
    stage: impl Fn(&Tensor) -> Result<Tensor> + Sync,
) -> Result<Tensor> {
    if mode == Mode::Graph {
        return in_slices(x, width, stage);
    }
    let batch = x.dim(0)?;
    let share = batch.div_ceil(rayon::current_num_threads());
    let slice = (PACKED_SLICE_ACTIVATIONS / width.max(1)).clamp(1, share.max(1));
    if batch <= slice {
        return stage(x);
    }
    let slices = (0..batch.div_ceil(slice))
        .into_par_iter()
        .map(|i| stage(&x.narrow(0, i * slice, slice.min(batch - i * slice))?))
        .collect::<Result<Vec<_>>>()?;
    Tensor::cat(&slices, 0)
}
