//! A batch in slices whose activations fit a cache.

use candle_core::{DType, Result, Tensor};
use rayon::prelude::*;

use crate::weights::mode::ComputeMode;

/// Most activations in one pass over a stage on a CPU, in values.
///
/// Below candle's threshold for its process-wide pool of spinning threads, and few enough that the
/// windows of a convolution stay in the second-level cache.
const SLICE_ACTIVATIONS: usize = 64 * 1024 - 1;

/// The same for packed layers, which cut their positions into blocks themselves: a larger batch
/// reads the weights less often. 4 MiB.
pub(crate) const PACKED_SLICE_ACTIVATIONS: usize = 1 << 20;

/// Checks that a batch has the shape `[batch, samples]` and lifts it to `[batch, samples, 1]`.
pub(crate) fn lift_input(x: &Tensor, samples: usize) -> Result<Tensor> {
    let (_, width) = x.dims2()?;
    if width != samples {
        candle_core::bail!("input has {width} samples, the model takes {samples}");
    }
    x.unsqueeze(2)
}

/// Runs `stage` on slices of a batch and stacks the results; at once on any device but a CPU.
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

/// As [`in_slices`]; packed, the threads of the current pool share the slices.
pub(crate) fn in_shares(
    x: &Tensor,
    width: usize,
    mode: ComputeMode,
    stage: impl Fn(&Tensor) -> Result<Tensor> + Sync,
) -> Result<Tensor> {
    if mode == ComputeMode::Graph {
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
