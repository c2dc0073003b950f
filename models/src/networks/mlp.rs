//! A multi-layer perceptron over flat values: the usual network for tabular data, and the lightest
//! network that a server can be raced with.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::slices::in_slices;
use super::spec::{BadHyperParameter, Spec, check_depth, check_size};
use super::staged::{StagedModel, check_only_exit, no_stage};
use crate::error::ModelError;
use crate::ops::layers::Linear;
use crate::ops::pointwise::relu;
use crate::weights::params::Params;

/// Hyper-parameters of [`Mlp`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpSpec {
    /// Values of one input.
    pub samples: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Width of every hidden layer, first layer first; each is one stage.
    pub layers: Vec<usize>,
}

/// The network: linear maps with a ReLU between them. Its only exit is after the last stage.
///
/// Tensors: `layerN.weight` `[in, out]` and `layerN.bias` `[out]` for every hidden layer, then
/// `head.weight` and `head.bias`.
pub struct Mlp {
    spec: MlpSpec,
    layers: Vec<Linear>,
    head: Linear,
    exits: [usize; 1],
}

// === impl MlpSpec ===

impl Spec for MlpSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![self.samples]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![self.layers.len()]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_depth("layers", self.layers.len())?;
        for (i, &width) in self.layers.iter().enumerate() {
            check_size(&format!("layers[{i}]"), width)?;
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(Mlp::new(params, self)?))
    }
}

// === impl Mlp ===

impl Mlp {
    pub(crate) fn new(
        params: &mut Params,
        spec: &MlpSpec,
    ) -> std::result::Result<Self, ModelError> {
        let mut inputs = spec.samples;
        let mut layers = Vec::with_capacity(spec.layers.len());
        for (i, &width) in spec.layers.iter().enumerate() {
            layers.push(Linear::new(params, &format!("layer{i}"), inputs, width)?);
            inputs = width;
        }
        Ok(Self {
            spec: spec.clone(),
            exits: [layers.len()],
            layers,
            head: Linear::new(params, "head", inputs, spec.classes)?,
        })
    }
}

impl StagedModel for Mlp {
    fn stages(&self) -> usize {
        self.layers.len()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let Some(layer) = self.layers.get(stage) else {
            return no_stage(stage, self.layers.len());
        };
        let width = self.spec.layers[stage];
        in_slices(x, width, |x| relu(&layer.forward(x)?))
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        check_only_exit(exit)?;
        self.head.forward(x)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use candle_core::Device;

    use super::*;

    fn linear(weight: &[f32], bias: &[f32]) -> Linear {
        let inputs = weight.len() / bias.len();
        let cpu = &Device::Cpu;
        Linear::from_weights(
            Tensor::from_slice(weight, (inputs, bias.len()), cpu).unwrap(),
            Tensor::from_slice(bias, bias.len(), cpu).unwrap(),
        )
    }

    #[test]
    fn a_network_small_enough_for_paper() {
        let spec = MlpSpec {
            samples: 2,
            classes: 2,
            layers: vec![2],
        };
        let model = Mlp {
            spec,
            layers: vec![linear(&[1.0, -1.0, 2.0, 0.5], &[0.5, -3.0])],
            head: linear(&[1.0, 0.0, 10.0, 1.0], &[0.0, 0.25]),
            exits: [1],
        };
        let x = Tensor::from_slice(&[1.0_f32, 2.0, 0.0, 8.0], (2, 2), &Device::Cpu).unwrap();
        // [1, 2] becomes [5.5, -3] and, through the ReLU, [5.5, 0]; [0, 8] becomes [16.5, 1].
        let hidden = model.run_stage(0, &x).unwrap();
        assert_eq!(hidden.to_vec2::<f32>().unwrap(), [[5.5, 0.0], [16.5, 1.0]]);
        let logits = model.logits(0, &hidden).unwrap();
        assert_eq!(
            logits.to_vec2::<f32>().unwrap(),
            [[5.5, 0.25], [26.5, 1.25]]
        );
        assert!(model.run_stage(1, &hidden).is_err());
        assert!(model.logits(1, &hidden).is_err());
    }
}
