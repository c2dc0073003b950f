//! A small 1-D convolutional network: convolutions, mean over time, one linear head.

use std::ops::Range;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};
use switchyard_kernels::Activation;

use super::conv_chain::{ConvSpec, channels_behind, check_chain, conv_chain};
use super::slices::{in_shares, lift_input};
use super::spec::{BadHyperParameter, Spec};
use super::staged::{StagedModel, check_only_exit, no_stages};
use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv1d, Linear};
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

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

/// The network. Its only exit is after the last stage.
pub struct Cnn1d {
    spec: Cnn1dSpec,
    mode: ComputeMode,
    layers: Vec<Conv1d>,
    head: Linear,
    exits: [usize; 1],
}

// === impl Cnn1dSpec ===

impl Spec for Cnn1dSpec {
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
        check_chain("layers", &self.layers)
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
        let layers = conv_chain(params, "layer", 1, &spec.layers)?;
        let channels = channels_behind(&spec.layers, 1);
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
        self.run_stages(stage..stage + 1, x)
    }

    fn run_stages(&self, stages: Range<usize>, x: &Tensor) -> Result<Tensor> {
        let Some(layers) = self.layers.get(stages.clone()) else {
            return no_stages(&stages, self.layers.len());
        };
        let channels = self.spec.layers[stages.clone()]
            .iter()
            .map(|layer| layer.channels);
        let width = self.spec.samples * channels.max().unwrap_or_default();
        in_shares(x, width, self.mode, |x| {
            let mut x = match stages.start {
                0 => Flow::sequence(self.mode, &lift_input(x, self.spec.samples)?)?,
                _ => Flow::sequence(self.mode, x)?,
            };
            for layer in layers {
                x = layer.forward(&x, Activation::Relu)?;
            }
            x.into_sequence()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        check_only_exit(exit)?;
        self.head.forward_pooled(x)
    }
}
