//! Weights of a layer in the form of their mode.

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, FeatureMap, PackedConv, WeightFormat, Window2d};

use crate::ops::flow::Flow;
use crate::ops::tensors::{kernel_error, with_values};
use crate::weights::mode::ComputeMode;
use crate::weights::precision::Precision;
use crate::weights::product::ProductWeights;

/// Weights and bias of a convolution over all channels.
pub(crate) enum ConvWeights {
    /// `[rows + 1, out]`, the last row the bias.
    Graph(ProductWeights),
    Packed(PackedConv),
}

// === impl ConvWeights ===

impl ConvWeights {
    /// From `[rows + 1, out]`, the last row the bias, for `input` channels; `window` is that of a
    /// convolution of images.
    ///
    /// # Errors
    /// No kernel packs the weights.
    pub(crate) fn new(
        weights: ProductWeights,
        window: Option<Window2d>,
        input: usize,
        mode: ComputeMode,
    ) -> Result<Self> {
        match mode {
            ComputeMode::Graph => Ok(Self::Graph(weights)),
            ComputeMode::Packed => {
                let rows = weights.widen()?;
                pack(&rows, window, input, weights.precision()).map(Self::Packed)
            }
        }
    }

    /// `activation(onto + convolution of x)`. `window` is the window over a map; `graph` computes
    /// the whole on tensors.
    pub(crate) fn forward(
        &self,
        x: &Flow,
        onto: Option<&Flow>,
        activation: Activation,
        window: impl FnOnce(&FeatureMap) -> Window2d,
        graph: impl FnOnce(&Tensor, &ProductWeights, Option<&Tensor>) -> Result<Tensor>,
    ) -> Result<Flow> {
        match self {
            Self::Graph(weights) => {
                let onto = onto.map(Flow::as_tensor).transpose()?;
                graph(x.as_tensor()?, weights, onto).map(Flow::Graph)
            }
            Self::Packed(packed) => {
                let x = x.as_map()?;
                let onto = onto.map(Flow::as_map).transpose()?;
                let result = packed.forward(x, window(x), onto, activation);
                result.map(Flow::Packed).map_err(kernel_error)
            }
        }
    }
}

/// Packs `rows` `[rows + 1, out]`, the last row the bias, for `input` channels.
///
/// # Errors
/// No kernel multiplies weights of this precision, or there are too many rows for it.
pub(crate) fn pack(
    rows: &Tensor,
    window: Option<Window2d>,
    input: usize,
    precision: Precision,
) -> Result<PackedConv> {
    let format = match precision {
        Precision::F32 => WeightFormat::F32,
        Precision::Bf16 => WeightFormat::Bf16,
        Precision::Int8 => WeightFormat::Int8,
        Precision::F16 => candle_core::bail!("no kernel multiplies weights of {precision}"),
    };
    let channels = [input, rows.dim(1)?];
    let packed = with_values(rows, |values| {
        PackedConv::new(values, window, channels, format)
    })?;
    packed.map_err(kernel_error)
}
