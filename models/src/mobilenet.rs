//! A MobileNet over the log-mel picture of a second of audio, time by frequency.
//!
//! A stage starts with a depthwise separable convolution that makes the picture smaller (Howard
//! et al., "MobileNets", 2017) and goes on with inverted residual blocks (Sandler et al.,
//! "MobileNetV2", 2018). There is no normalisation: the last convolution of a residual block
//! starts small instead, as in [`resnet1d`](crate::resnet1d).

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::architecture::{BadHyperParameter, Spec, check_depth, check_size};
use crate::error::ModelError;
use crate::layers::Linear;
use crate::layers2d::{Conv2d, DepthwiseConv2d, mean_pool};
use crate::logmel::{self, BANDS};
use crate::model::{StagedModel, in_slices};
use crate::params::Params;
use crate::pointwise::relu;
use crate::unfold2d::Window2d;

/// Side of every depthwise window, and of the stem's.
const KERNEL: usize = 3;

/// Positions between windows of the stem, in both directions.
const STEM_STRIDE: usize = 2;

/// Standard deviation of a residual block's last convolution, relative to He's.
const RESIDUAL_GAIN: f64 = 0.1;

/// Hyper-parameters of [`MobileNet`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNetSpec {
    /// Samples of one input, 16,000 a second.
    pub samples: usize,
    /// Classes told apart.
    pub classes: usize,
    /// Channels of the first convolution; part of stage 0.
    pub stem: usize,
    /// How many times wider a residual block is inside.
    pub expansion: usize,
    /// Stages in order.
    pub stages: Vec<MobileNetStage>,
    /// How many stages run before each exit; increasing, the last one all of them.
    pub exits: Vec<usize>,
}

/// A run of blocks of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MobileNetStage {
    /// Channels between blocks.
    pub channels: usize,
    /// Residual blocks after the separable convolution.
    pub blocks: usize,
    /// Positions between windows of the separable convolution, in both directions.
    pub stride: usize,
}

/// The network.
pub struct MobileNet {
    spec: MobileNetSpec,
    stem: Conv2d,
    stages: Vec<Stage>,
    heads: Vec<Linear>,
}

struct Stage {
    separable: Separable,
    blocks: Vec<Block>,
    /// Largest number of activations per input.
    width: usize,
}

/// `relu(pointwise(relu(depthwise(x))))`.
struct Separable {
    depthwise: DepthwiseConv2d,
    pointwise: Conv2d,
}

/// `x + project(relu(depthwise(relu(expand(x)))))`.
struct Block {
    expand: Conv2d,
    depthwise: DepthwiseConv2d,
    project: Conv2d,
}

// === impl MobileNetSpec ===

impl Spec for MobileNetSpec {
    fn samples(&self) -> usize {
        self.samples
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        self.exits.clone()
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_size("stem", self.stem)?;
        check_size("expansion", self.expansion)?;
        check_depth("stages", self.stages.len())?;
        for (i, stage) in self.stages.iter().enumerate() {
            check_size(&format!("stages[{i}].channels"), stage.channels)?;
            check_depth(&format!("stages[{i}].blocks"), stage.blocks)?;
            check_size(&format!("stages[{i}].stride"), stage.stride)?;
        }
        let rising = self.exits.is_sorted_by(|a, b| a < b);
        let first = self.exits.first().is_some_and(|&after| after > 0);
        if !rising || !first || self.exits.last() != Some(&self.stages.len()) {
            return Err(BadHyperParameter {
                field: "exits".to_owned(),
                reason: format!(
                    "{:?} must rise from at least 1 to the {} stages",
                    self.exits,
                    self.stages.len()
                ),
            });
        }
        Ok(())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(MobileNet::new(params, self)?))
    }
}

// === impl MobileNet ===

impl MobileNet {
    pub(crate) fn new(
        params: &mut Params,
        spec: &MobileNetSpec,
    ) -> std::result::Result<Self, ModelError> {
        let window = Window2d::centred(KERNEL, STEM_STRIDE);
        let stem = Conv2d::new(params, "stem", [1, spec.stem], window, 1.0)?;
        let mut picture = [logmel::frames(spec.samples), BANDS].map(|n| n.div_ceil(STEM_STRIDE));
        let mut channels = spec.stem;
        let mut stages = Vec::with_capacity(spec.stages.len());
        for (i, &stage) in spec.stages.iter().enumerate() {
            let before = picture[0] * picture[1] * channels;
            picture = picture.map(|n| n.div_ceil(stage.stride));
            let name = format!("stage{i}");
            let mut built = Stage::new(params, &name, channels, stage, spec.expansion)?;
            let inside = picture[0] * picture[1] * stage.channels * spec.expansion;
            built.width = before.max(inside);
            stages.push(built);
            channels = stage.channels;
        }
        let mut heads = Vec::with_capacity(spec.exits.len());
        for (i, &after) in spec.exits.iter().enumerate() {
            let channels = spec.stages[after - 1].channels;
            heads.push(Linear::new(
                params,
                &format!("exit{i}"),
                channels,
                spec.classes,
            )?);
        }
        Ok(Self {
            spec: spec.clone(),
            stem,
            stages,
            heads,
        })
    }

    /// `[batch, samples]` to `[batch, frames / 2, bands / 2, stem]`.
    fn stem(&self, x: &Tensor) -> Result<Tensor> {
        let picture = logmel::of_input(x, self.spec.samples)?.unsqueeze(3)?;
        relu(&self.stem.forward(&picture)?)
    }
}

impl StagedModel for MobileNet {
    fn stages(&self) -> usize {
        self.stages.len()
    }

    fn exits(&self) -> &[usize] {
        &self.spec.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let Some(run) = self.stages.get(stage) else {
            candle_core::bail!("stage {stage} of {}", self.stages.len());
        };
        in_slices(x, run.width, |x| {
            if stage == 0 {
                run.forward(&self.stem(x)?)
            } else {
                run.forward(x)
            }
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            candle_core::bail!("exit {exit} of {}", self.heads.len());
        };
        head.forward(&mean_pool(&relu(x)?)?)
    }
}

// === impl Stage ===

impl Stage {
    fn new(
        params: &mut Params,
        name: &str,
        input: usize,
        stage: MobileNetStage,
        expansion: usize,
    ) -> std::result::Result<Self, ModelError> {
        let window = Window2d::centred(KERNEL, stage.stride);
        let point = Window2d::centred(1, 1);
        let at = format!("{name}.separable");
        let separable = Separable {
            depthwise: DepthwiseConv2d::new(
                params,
                &format!("{at}.depthwise"),
                input,
                window,
                1.0,
            )?,
            pointwise: Conv2d::new(
                params,
                &format!("{at}.pointwise"),
                [input, stage.channels],
                point,
                1.0,
            )?,
        };
        let blocks = (0..stage.blocks)
            .map(|j| {
                let name = format!("{name}.block{j}");
                Block::new(params, &name, stage.channels, expansion)
            })
            .collect::<std::result::Result<_, _>>()?;
        Ok(Self {
            separable,
            blocks,
            width: 0,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = relu(&self.separable.depthwise.forward(x)?)?;
        let mut x = relu(&self.separable.pointwise.forward(&x)?)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        Ok(x)
    }
}

// === impl Block ===

impl Block {
    fn new(
        params: &mut Params,
        name: &str,
        channels: usize,
        expansion: usize,
    ) -> std::result::Result<Self, ModelError> {
        let inside = channels * expansion;
        let point = Window2d::centred(1, 1);
        let window = Window2d::centred(KERNEL, 1);
        let part = |part: &str| format!("{name}.{part}");
        Ok(Self {
            expand: Conv2d::new(params, &part("expand"), [channels, inside], point, 1.0)?,
            depthwise: DepthwiseConv2d::new(params, &part("depthwise"), inside, window, 1.0)?,
            project: Conv2d::new(
                params,
                &part("project"),
                [inside, channels],
                point,
                RESIDUAL_GAIN,
            )?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let inner = relu(&self.expand.forward(x)?)?;
        let inner = relu(&self.depthwise.forward(&inner)?)?;
        x + self.project.forward(&inner)?
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{DType, Device};
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::*;

    fn stage(channels: usize, blocks: usize, stride: usize) -> MobileNetStage {
        MobileNetStage {
            channels,
            blocks,
            stride,
        }
    }

    fn spec() -> MobileNetSpec {
        MobileNetSpec {
            samples: 1600,
            classes: 3,
            stem: 4,
            expansion: 2,
            stages: vec![stage(6, 1, 2), stage(8, 2, 1), stage(10, 1, 3)],
            exits: vec![2, 3],
        }
    }

    #[test]
    fn pictures_shrink_from_stage_to_stage() {
        let mut params = Params::fresh(Pcg64::seed_from_u64(1));
        let model = spec().build(&mut params).unwrap();
        let mut x = Tensor::zeros((2, 1600), DType::F32, &Device::Cpu).unwrap();
        // 10 frames by 40 bands, half of that after the stem.
        let shapes = [[2, 3, 10, 6], [2, 3, 10, 8], [2, 1, 4, 10]];
        for (stage, shape) in shapes.iter().enumerate() {
            x = model.run_stage(stage, &x).unwrap();
            assert_eq!(x.dims(), shape);
        }
        assert_eq!(model.head(1, &x).unwrap().dims(), [2, 3]);
        assert_eq!(model.exits(), [2, 3]);
    }

    #[test]
    fn impossible_hyper_parameters_are_named() {
        let field = |spec: MobileNetSpec| spec.check().unwrap_err().field;
        let exits = |exits| MobileNetSpec { exits, ..spec() };
        let second = |second| MobileNetSpec {
            stages: vec![stage(6, 1, 2), second],
            exits: vec![2],
            ..spec()
        };
        assert!(spec().check().is_ok());
        for wrong in [vec![], vec![0, 3], vec![3, 3], vec![3, 2], vec![2], vec![4]] {
            assert_eq!(field(exits(wrong)), "exits");
        }
        assert_eq!(field(second(stage(0, 1, 1))), "stages[1].channels");
        assert_eq!(field(second(stage(6, 0, 1))), "stages[1].blocks");
        assert_eq!(field(second(stage(6, 1, 0))), "stages[1].stride");
    }
}
