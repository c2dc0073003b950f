//! The two layers everything is built from: a channels-last 1-D convolution and a linear layer.
//!
//! Activations are `[batch, length, channels]`. candle 0.11's own `conv1d` builds its im2col
//! matrix element by element and transposes the result back to channels-first; with the channels
//! last, the columns are whole rows copied by memcpy and the output needs no transpose. See
//! `examples/conv.rs` for the two measured side by side.

use candle_core::{Result, Tensor};

use crate::error::ModelError;
use crate::params::{Init, Params};

/// A "same" convolution with stride: `[batch, length, in]` to `[batch, ceil(length/stride), out]`.
pub(crate) struct Conv1d {
    /// `[kernel * in, out]`, rows ordered by (offset, input channel).
    weight: Tensor,
    bias: Tensor,
    kernel: usize,
    stride: usize,
}

/// Shape of a convolution. `kernel` must be a multiple of `stride`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConvShape {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
}

// === impl Conv1d ===

impl Conv1d {
    /// He initialisation scaled by `gain` (1 in front of a ReLU).
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        shape: ConvShape,
        gain: f64,
    ) -> std::result::Result<Self, ModelError> {
        let rows = shape.kernel * shape.input;
        let init = Init::Normal(gain * (2.0 / rows as f64).sqrt());
        Ok(Self {
            weight: params.get(&format!("{name}.weight"), &[rows, shape.output], init)?,
            bias: params.get(&format!("{name}.bias"), &[shape.output], Init::Zero)?,
            kernel: shape.kernel,
            stride: shape.stride,
        })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, channels) = x.dims3()?;
        let out_length = length.div_ceil(self.stride);
        // Folding `stride` neighbouring positions into the channels leaves a convolution of
        // stride 1 with `taps` offsets.
        let taps = self.kernel / self.stride;
        let folded_length = out_length + taps - 1;
        let left = (self.kernel - self.stride) / 2;
        let right = folded_length * self.stride - length - left;
        let rows = batch * folded_length;
        let folded = x
            .pad_with_zeros(1, left, right)?
            .reshape((rows, self.stride * channels))?;
        // The batch is one long sequence here: a window that straddles two sequences gives a row
        // that is cut off below. That wastes taps-1 rows per sequence and saves a strided copy.
        let windows = rows - (taps - 1);
        let columns = (0..taps)
            .map(|tap| folded.narrow(0, tap, windows))
            .collect::<Result<Vec<_>>>()?;
        let y = Tensor::cat(&columns, 1)?
            .matmul(&self.weight)?
            .broadcast_add(&self.bias)?;
        if batch == 1 {
            return y.unsqueeze(0);
        }
        y.pad_with_zeros(0, 0, taps - 1)?
            .reshape((batch, folded_length, ()))?
            .narrow(1, 0, out_length)
    }
}

/// `[batch, in]` to `[batch, out]`.
pub(crate) struct Linear {
    weight: Tensor,
    bias: Tensor,
}

// === impl Linear ===

impl Linear {
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        output: usize,
    ) -> std::result::Result<Self, ModelError> {
        let init = Init::Normal((1.0 / input as f64).sqrt());
        Ok(Self {
            weight: params.get(&format!("{name}.weight"), &[input, output], init)?,
            bias: params.get(&format!("{name}.bias"), &[output], Init::Zero)?,
        })
    }

    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight)?.broadcast_add(&self.bias)
    }

    /// Mean over the length of `[batch, length, in]`, then the linear map.
    pub(crate) fn forward_pooled(&self, x: &Tensor) -> Result<Tensor> {
        self.forward(&x.mean(1)?)
    }
}
