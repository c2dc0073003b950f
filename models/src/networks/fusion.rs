//! A network over two modalities: a body's accelerations and a camera's clip.
//!
//! An X3D trunk reads the clip. A few 1-D convolutions read the sensor's axes and their magnitude,
//! which does not depend on the sensor's orientation. The pooled features of both are concatenated,
//! and one linear head reads them. Fusing this late keeps either half useful when the other one
//! sees nothing.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};
use switchyard_kernels::Activation;

use super::conv_chain::{ConvSpec, channels_behind, check_chain, conv_chain};
use super::slices::in_shares;
use super::spec::{BadHyperParameter, Spec, check_size};
use super::staged::{StagedModel, check_only_exit, no_stage};
use super::x3d::{Trunk, TrunkSpec};
use crate::error::ModelError;
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv1d, Linear};
use crate::weights::params::Params;

/// Hyper-parameters of [`Fusion`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FusionSpec {
    /// Classes told apart.
    pub classes: usize,
    /// The half that reads the accelerometer, the first part of an input; all of it in stage 0.
    pub sensor: SensorSpec,
    /// The half that reads the clip, the second part.
    pub trunk: TrunkSpec,
}

/// Hyper-parameters of the half that reads a window of a sensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensorSpec {
    /// Moments of one window.
    pub length: usize,
    /// Values per moment, neighbours in memory.
    pub axes: usize,
    /// Convolutions in order.
    pub layers: Vec<ConvSpec>,
}

/// The network. Its only exit is after the last stage of the trunk.
pub struct Fusion {
    spec: FusionSpec,
    layers: Vec<Conv1d>,
    trunk: Trunk,
    head: Linear,
    exits: [usize; 1],
}

// === impl FusionSpec ===

impl Spec for FusionSpec {
    /// Two inputs, one after the other.
    fn input_shape(&self) -> Vec<usize> {
        let samples = self.sensor.samples().saturating_add(self.trunk.samples());
        vec![samples]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![self.trunk.stages.len()]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        self.trunk.check("trunk")?;
        check_size("sensor.length", self.sensor.length)?;
        check_size("sensor.axes", self.sensor.axes)?;
        check_chain("sensor.layers", &self.sensor.layers)
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        let axes = self.sensor.axes + 1;
        let layers = conv_chain(params, "sensor.layer", axes, &self.sensor.layers)?;
        let trunk = Trunk::new(params, "trunk.", &self.trunk)?;
        let features = self.sensor.channels() + self.trunk.features(self.trunk.stages.len() - 1);
        Ok(Box::new(Fusion {
            spec: self.clone(),
            layers,
            head: Linear::new(params, "head", features, self.classes)?,
            exits: [trunk.stages()],
            trunk,
        }))
    }
}

// === impl SensorSpec ===

impl SensorSpec {
    fn samples(&self) -> usize {
        self.length.saturating_mul(self.axes)
    }

    /// Channels behind the last layer.
    fn channels(&self) -> usize {
        channels_behind(&self.layers, self.axes + 1)
    }
}

// === impl Fusion ===

impl Fusion {
    /// Flat windows of the sensor to the mean over time of the last layer, `[batch, channels]`.
    fn feel(&self, windows: &Tensor) -> Result<Tensor> {
        let SensorSpec { length, axes, .. } = self.spec.sensor;
        let x = windows.reshape(((), length, axes))?;
        let magnitude = x.sqr()?.sum_keepdim(2)?.sqrt()?;
        let x = Tensor::cat(&[&x, &magnitude], 2)?;
        let mut x = Flow::sequence(self.trunk.mode(), &x)?;
        for layer in &self.layers {
            x = layer.forward(&x, Activation::Relu)?;
        }
        x.mean_over_length()?.into_rows()
    }
}

impl StagedModel for Fusion {
    fn stages(&self) -> usize {
        self.trunk.stages()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    /// Between stages, `[batch, sensor features + activations of the trunk]`; behind the last stage
    /// the trunk's activations are pooled.
    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        if stage >= self.stages() {
            return no_stage(stage, self.stages());
        }
        let (felt, seen) = if stage == 0 {
            (self.spec.sensor.samples(), self.spec.trunk.samples())
        } else {
            let seen = self.trunk.shape_after(stage - 1).iter().product();
            (self.spec.sensor.channels(), seen)
        };
        let (_, width) = x.dims2()?;
        if width != felt + seen {
            candle_core::bail!(
                "stage {stage} takes {} values per input, not {width}",
                felt + seen
            );
        }
        in_shares(x, self.trunk.width(stage), self.trunk.mode(), |x| {
            let mut sensor = x.narrow(1, 0, felt)?.contiguous()?;
            let mut clip = x.narrow(1, felt, seen)?.contiguous()?;
            if stage == 0 {
                sensor = self.feel(&sensor)?;
            } else {
                let [frames, lines, columns, channels] = self.trunk.shape_after(stage - 1);
                clip = clip.reshape(((), frames, lines, columns, channels))?;
            }
            let seen = self.trunk.run_stage(stage, &clip)?;
            let seen = if stage + 1 == self.stages() {
                self.trunk.pool(&seen)?
            } else {
                seen.flatten_from(1)?
            };
            Tensor::cat(&[&sensor, &seen], 1)
        })
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
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::networks::x3d::TrunkStage;

    const SENSOR: usize = 20 * 2;
    const WIDTH: usize = SENSOR + 4 * 64;

    fn model() -> Box<dyn StagedModel> {
        let layer = |channels| ConvSpec {
            channels,
            kernel: 4,
            stride: 2,
        };
        let stage = |channels, stride| TrunkStage {
            channels,
            inner: 2 * channels,
            blocks: 1,
            stride,
        };
        let spec = FusionSpec {
            classes: 3,
            sensor: SensorSpec {
                length: 20,
                axes: 2,
                layers: vec![layer(5), layer(7)],
            },
            trunk: TrunkSpec {
                frames: 4,
                side: 8,
                every: 1,
                shrink: 1,
                segments: 2,
                stem: 4,
                stages: vec![stage(4, 1), stage(6, 2)],
            },
        };
        spec.check().unwrap();
        assert_eq!(spec.input_shape(), [WIDTH]);
        spec.build(&mut Params::fresh(Pcg64::seed_from_u64(1)))
            .unwrap()
    }

    fn inputs() -> Vec<f32> {
        let mut rng = Pcg64::seed_from_u64(2);
        (0..3 * WIDTH).map(|_| rng.random()).collect()
    }

    fn answer(model: &dyn StagedModel, values: Vec<f32>) -> Vec<Vec<f32>> {
        let batch = values.len() / WIDTH;
        let x = Tensor::from_vec(values, (batch, WIDTH), &Device::Cpu).unwrap();
        model.forward(0, &x).unwrap().to_vec2().unwrap()
    }

    #[test]
    fn both_inputs_reach_the_answer() {
        let model = model();
        let whole = answer(model.as_ref(), inputs());
        for at in [3, SENSOR + 3] {
            let mut changed = inputs();
            changed[at] += 1.0;
            let changed = answer(model.as_ref(), changed);
            assert_ne!(changed[0], whole[0], "value {at}");
            assert_eq!(changed[1..], whole[1..], "value {at}");
        }
    }

    #[test]
    fn rows_do_not_depend_on_the_batch() {
        let model = model();
        let together = answer(model.as_ref(), inputs());
        for (i, row) in together.iter().enumerate() {
            let alone = answer(model.as_ref(), inputs()[i * WIDTH..][..WIDTH].to_vec());
            let close = alone[0].iter().zip(row).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(close, "row {i}: {alone:?} {row:?}");
        }
    }

    #[test]
    fn activations_of_another_stage_are_refused() {
        let model = model();
        let x = Tensor::from_vec(inputs(), (3, WIDTH), &Device::Cpu).unwrap();
        let text = model.run_stage(1, &x).unwrap_err().to_string();
        assert!(
            text.contains("stage 1") && text.contains(&WIDTH.to_string()),
            "{text}"
        );
    }
}
