//! An LSTM over log-mel frames: one stage per layer.
//!
//! Neighbouring frames are stacked into one step: a second of audio takes 25 steps instead of 100.
//! The head reads the mean of the last layer's states.

mod recurrence;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::slices::in_shares;
use super::spec::{BadHyperParameter, Spec, check_depth, check_size};
use super::staged::{StagedModel, check_only_exit, no_stage};
use crate::error::ModelError;
use crate::features::logmel::{self, BANDS};
use crate::ops::layers::Linear;
use crate::weights::mode::ComputeMode;
use crate::weights::params::{Init, Params};

/// Hyper-parameters of [`Lstm`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LstmSpec {
    /// Samples of one input, 16,000 a second.
    pub samples: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Frames of 10 ms per step; remaining frames are dropped.
    pub stack: usize,
    /// Width of every layer's state, first layer first.
    pub layers: Vec<usize>,
}

/// The network.
pub struct Lstm {
    spec: LstmSpec,
    mode: ComputeMode,
    layers: Vec<LstmLayer>,
    head: Linear,
    exits: [usize; 1],
}

/// One layer: one product for the inputs of all steps, then the recurrence.
struct LstmLayer {
    input: Linear,
    /// `[width, 4 * width]`.
    recurrent: Tensor,
}

// === impl LstmSpec ===

impl LstmSpec {
    fn steps(&self) -> usize {
        logmel::frames(self.samples) / self.stack
    }
}

impl Spec for LstmSpec {
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
        check_size("stack", self.stack)?;
        let frames = logmel::frames(self.samples);
        if self.stack > frames {
            return Err(BadHyperParameter {
                field: "stack".to_owned(),
                reason: format!("{} of the {frames} frames of an input", self.stack),
            });
        }
        check_depth("layers", self.layers.len())?;
        for (i, &width) in self.layers.iter().enumerate() {
            check_size(&format!("layers[{i}]"), width)?;
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(Lstm::new(params, self)?))
    }
}

// === impl Lstm ===

impl Lstm {
    pub(crate) fn new(
        params: &mut Params,
        spec: &LstmSpec,
    ) -> std::result::Result<Self, ModelError> {
        let mut inputs = spec.stack * BANDS;
        let mut layers = Vec::with_capacity(spec.layers.len());
        for (i, &width) in spec.layers.iter().enumerate() {
            layers.push(LstmLayer::new(params, &format!("layer{i}"), inputs, width)?);
            inputs = width;
        }
        Ok(Self {
            spec: spec.clone(),
            mode: params.mode(),
            exits: [layers.len()],
            layers,
            head: Linear::new(params, "head", inputs, spec.classes)?,
        })
    }

    /// `[batch, samples]` to `[batch, steps, stack * 40]`.
    fn steps(&self, x: &Tensor) -> Result<Tensor> {
        let frames = logmel::of_input(x, self.spec.samples)?;
        let (batch, steps) = (x.dim(0)?, self.spec.steps());
        frames.narrow(1, 0, steps * self.spec.stack)?.reshape((
            batch,
            steps,
            self.spec.stack * BANDS,
        ))
    }
}

impl StagedModel for Lstm {
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
        let gates = recurrence::GATES * self.spec.layers[stage];
        in_shares(x, self.spec.steps() * gates, self.mode, |x| {
            if stage == 0 {
                layer.forward(&self.steps(x)?)
            } else {
                layer.forward(x)
            }
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        check_only_exit(exit)?;
        self.head.forward_pooled(x)
    }
}

// === impl LstmLayer ===

impl LstmLayer {
    fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        width: usize,
    ) -> std::result::Result<Self, ModelError> {
        let gates = recurrence::GATES * width;
        let spread = Init::Normal((1.0 / width as f64).sqrt());
        Ok(Self {
            input: Linear::new(params, &format!("{name}.input"), input, gates)?,
            recurrent: params.get(&format!("{name}.recurrent"), &[width, gates], spread)?,
        })
    }

    /// `[batch, steps, input]` to `[batch, steps, width]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, steps, width) = x.dims3()?;
        let gates = self.input.forward(&x.reshape((batch * steps, width))?)?;
        recurrence::unroll(&gates.reshape((batch, steps, ()))?, &self.recurrent)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{DType, Device};
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::*;

    fn spec() -> LstmSpec {
        LstmSpec {
            samples: 1120,
            classes: 3,
            stack: 2,
            layers: vec![8, 6],
        }
    }

    #[test]
    fn a_rest_of_frames_is_left_out() {
        // Seven frames: three steps of two.
        let mut params = Params::fresh(Pcg64::seed_from_u64(1));
        let model = spec().build(&mut params).unwrap();
        let x = Tensor::zeros((2, 1120), DType::F32, &Device::Cpu).unwrap();
        let states = model.run_stage(0, &x).unwrap();
        assert_eq!(states.dims(), [2, 3, 8]);
        let states = model.run_stage(1, &states).unwrap();
        assert_eq!(states.dims(), [2, 3, 6]);
        assert_eq!(model.head(0, &states).unwrap().dims(), [2, 3]);
    }

    #[test]
    fn impossible_hyper_parameters_are_named() {
        let field = |spec: LstmSpec| spec.check().unwrap_err().field;
        let stack = |stack| LstmSpec { stack, ..spec() };
        let layers = |layers| LstmSpec { layers, ..spec() };
        assert!(spec().check().is_ok());
        assert_eq!(field(stack(0)), "stack");
        assert_eq!(field(stack(8)), "stack");
        assert_eq!(field(layers(vec![])), "layers");
        assert_eq!(field(layers(vec![8, 0])), "layers[1]");
    }
}
