//! Layer normalisation over channels.

use candle_core::{Result, Tensor};
use rayon::prelude::*;
use switchyard_kernels::{FeatureMap, norm};

use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::tensors::with_values;
use crate::weights::mode::ComputeMode;
use crate::weights::params::{Init, Params};

/// Values that a thread normalises at once.
const SHARE: usize = 16 << 10;

/// Images to images of the same shape.
pub(crate) struct ChannelNorm {
    weights: NormWeights,
    epsilon: f32,
}

enum NormWeights {
    Graph { scale: Tensor, shift: Tensor },
    Packed { scale: Vec<f32>, shift: Vec<f32> },
}

// === impl ChannelNorm ===

impl ChannelNorm {
    /// From `NAME.weight` and `NAME.bias`, both `[width]`.
    pub(crate) fn new(
        params: &mut Params,
        name: &str,
        width: usize,
        epsilon: f64,
    ) -> std::result::Result<Self, ModelError> {
        let scale = params.get(&format!("{name}.weight"), &[width], Init::Zero)?;
        let shift = params.get(&format!("{name}.bias"), &[width], Init::Zero)?;
        let values =
            |tensor| with_values(tensor, <[f32]>::to_vec).map_err(ModelError::compute(name));
        let weights = match params.mode() {
            ComputeMode::Packed => NormWeights::Packed {
                scale: values(&scale)?,
                shift: values(&shift)?,
            },
            ComputeMode::Graph => NormWeights::Graph { scale, shift },
        };
        Ok(Self {
            weights,
            epsilon: epsilon as f32,
        })
    }

    pub(crate) fn forward(&self, x: &Flow) -> Result<Flow> {
        match &self.weights {
            NormWeights::Graph { scale, shift } => {
                let x = x.as_tensor()?.to_dtype(scale.dtype())?;
                candle_nn::ops::layer_norm(&x, scale, shift, self.epsilon).map(Flow::Graph)
            }
            NormWeights::Packed { scale, shift } => {
                let x = x.as_map()?;
                let mut normed = FeatureMap::new(x.dims());
                normed.values.copy_from_slice(&x.values);
                let width = scale.len();
                if x.dims()[3] != width {
                    candle_core::bail!("a norm of {width} channels meets {:?}", x.dims());
                }
                let each = |rows: &mut [f32]| norm::layer_norm(rows, scale, shift, self.epsilon);
                match rayon::current_num_threads() {
                    1 => each(&mut normed.values),
                    _ => normed
                        .values
                        .par_chunks_mut((SHARE / width).max(1) * width)
                        .for_each(each),
                }
                Ok(Flow::Packed(normed))
            }
        }
    }
}
