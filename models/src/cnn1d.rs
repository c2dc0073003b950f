//! A small 1-D convolutional network: convolutions, mean over time, one linear head.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::architecture::{BadHyperParameter, Spec, check_conv, check_depth};
use crate::error::ModelError;
use crate::flow::Mode;
use crate::kernels::Activation;
use crate::layers::{Conv1d, ConvShape, Linear};
use crate::model::{StagedModel, in_shares, lift_input};
use crate::params::Params;

/// Hyper-parameters of [`Cnn1d`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cnn1dSpec {
    /// Samples of one input.
    pub samples: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Convolutions in order; each is one stage.
    pub layers: Vec<ConvSpec>,
}

/// One convolution followed by a ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvSpec {
    /// Output channels.
    pub channels: usize,
    /// Window length in positions; a multiple of `stride`.
    pub kernel: usize,
    /// Positions between windows.
    pub stride: usize,
}

/// The network. Its only exit is after the last stage.
pub struct Cnn1d {
    spec: Cnn1dSpec,
    mode: Mode,
    layers: Vec<Conv1d>,
    head: Linear,
    exits: [usize; 1],
}

// === impl Cnn1dSpec ===

impl Spec for Cnn1dSpec {
    fn samples(&self) -> usize {
        self.samples
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![self.layers.len()]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_depth("layers", self.layers.len())?;
        for (i, layer) in self.layers.iter().enumerate() {
            check_conv(&format!("layers[{i}]"), layer)?;
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(Cnn1d::new(params, self)?))
    }
}

// === impl Cnn1d ===

impl Cnn1d {
    pub(crate) fn new(
        params: &mut Params,
        spec: &Cnn1dSpec,
    ) -> std::result::Result<Self, ModelError> {
        let mut layers = Vec::with_capacity(spec.layers.len());
        let mut channels = 1;
        for (i, layer) in spec.layers.iter().enumerate() {
            let shape = ConvShape {
                input: channels,
                output: layer.channels,
                kernel: layer.kernel,
                stride: layer.stride,
            };
            layers.push(Conv1d::new(params, &format!("layer{i}"), shape, 1.0)?);
            channels = layer.channels;
        }
        Ok(Self {
            spec: spec.clone(),
            mode: params.mode(),
            head: Linear::new(params, "head", channels, spec.classes)?,
            exits: [layers.len()],
            layers,
        })
    }
}

impl StagedModel for Cnn1d {
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
            candle_core::bail!("stage {stage} of {}", self.layers.len());
        };
        let width = self.spec.samples * self.spec.layers[stage].channels;
        in_shares(x, width, self.mode, |x| {
            let x = match stage {
                0 => self.mode.sequence(&lift_input(x, self.spec.samples)?)?,
                _ => self.mode.sequence(x)?,
            };
            layer.forward(&x, Activation::Relu)?.into_sequence()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        if exit != 0 {
            candle_core::bail!("exit {exit} of 1");
        }
        self.head.forward_pooled(x)
    }
}
