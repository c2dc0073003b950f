//! A MobileNet over the log-mel picture of a second of audio, time by frequency.
//!
//! A group of blocks starts with a depthwise separable convolution that makes the picture smaller
//! (Howard et al., "MobileNets", 2017) and goes on with inverted residual blocks (Sandler et al.,
//! "MobileNetV2", 2018). There is no normalisation: the last convolution of a residual block
//! starts small instead, as in [`resnet1d`](crate::resnet1d). `spec` holds the hyper-parameters
//! and cuts the network into stages.

mod spec;

use candle_core::{Result, Tensor};

pub use self::spec::{MobileNetGroup, MobileNetSpec};
use self::spec::{STEM_STRIDE, Unit};
use crate::error::ModelError;
use crate::flow::{Flow, Mode};
use crate::kernels::Activation;
use crate::layers::Linear;
use crate::layers2d::{Conv2d, DepthwiseConv2d};
use crate::logmel;
use crate::model::{StagedModel, in_shares};
use crate::params::Params;
use crate::unfold2d::Window2d;

/// Side of every depthwise window, and of the stem's.
const KERNEL: usize = 3;

/// Standard deviation of a residual block's last convolution, relative to He's.
const RESIDUAL_GAIN: f64 = 0.1;

/// The network.
pub struct MobileNet {
    spec: MobileNetSpec,
    mode: Mode,
    layers: Vec<Layer>,
    stages: Vec<Stage>,
    exits: Vec<usize>,
    heads: Vec<Linear>,
}

/// Layers `first..end` and the most activations per input at any point of them.
struct Stage {
    first: usize,
    end: usize,
    width: usize,
}

/// What cannot be cut.
enum Layer {
    Stem(Conv2d),
    Separable(Separable),
    Block(Block),
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

// === impl MobileNet ===

impl MobileNet {
    pub(crate) fn new(
        params: &mut Params,
        spec: &MobileNetSpec,
    ) -> std::result::Result<Self, ModelError> {
        let places = spec.places();
        let layers = places
            .iter()
            .map(|place| Layer::new(params, spec, place.unit))
            .collect::<std::result::Result<_, _>>()?;
        let mut stages = Vec::new();
        let mut first = 0;
        for end in spec.stage_ends() {
            let widths = places[first..end].iter().map(|place| place.width);
            let width = widths.max().unwrap_or_default();
            stages.push(Stage { first, end, width });
            first = end;
        }
        let mut heads = Vec::with_capacity(spec.exits.len());
        for (i, &groups) in spec.exits.iter().enumerate() {
            let channels = spec.groups[groups - 1].channels;
            heads.push(Linear::new(
                params,
                &format!("exit{i}"),
                channels,
                spec.classes,
            )?);
        }
        Ok(Self {
            spec: spec.clone(),
            mode: params.mode(),
            layers,
            stages,
            exits: spec.exits_after(),
            heads,
        })
    }
}

impl StagedModel for MobileNet {
    fn stages(&self) -> usize {
        self.stages.len()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        let Some(&Stage { first, end, width }) = self.stages.get(stage) else {
            candle_core::bail!("stage {stage} of {}", self.stages.len());
        };
        in_shares(x, width, self.mode, |x| {
            let mut x = if first == 0 {
                let picture = logmel::of_input(x, self.spec.samples)?.unsqueeze(3)?;
                self.mode.pictures(&picture)?
            } else {
                self.mode.pictures(x)?
            };
            for layer in &self.layers[first..end] {
                x = layer.forward(&x)?;
            }
            x.into_pictures()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            candle_core::bail!("exit {exit} of {}", self.heads.len());
        };
        let pooled = self.mode.pictures(x)?.relu()?.mean_pool()?;
        head.forward_rows(&pooled, Activation::None)?.into_rows()
    }
}

// === impl Layer ===

impl Layer {
    fn new(
        params: &mut Params,
        spec: &MobileNetSpec,
        unit: Unit,
    ) -> std::result::Result<Self, ModelError> {
        Ok(match unit {
            Unit::Stem => {
                let window = Window2d::centred(KERNEL, STEM_STRIDE);
                Self::Stem(Conv2d::new(params, "stem", [1, spec.stem], window, 1.0)?)
            }
            Unit::Separable { group } => {
                let input = spec.input(group);
                Self::Separable(Separable::new(params, group, input, spec.groups[group])?)
            }
            Unit::Block { group, block } => {
                let name = format!("group{group}.block{block}");
                let channels = spec.groups[group].channels;
                Self::Block(Block::new(params, &name, channels, spec.expansion)?)
            }
        })
    }

    fn forward(&self, x: &Flow) -> Result<Flow> {
        match self {
            Self::Stem(stem) => stem.forward(x, Activation::Relu),
            Self::Separable(separable) => separable.forward(x),
            Self::Block(block) => block.forward(x),
        }
    }
}

// === impl Separable ===

impl Separable {
    fn new(
        params: &mut Params,
        group: usize,
        input: usize,
        spec: MobileNetGroup,
    ) -> std::result::Result<Self, ModelError> {
        let window = Window2d::centred(KERNEL, spec.stride);
        let point = Window2d::centred(1, 1);
        let part = |part: &str| format!("group{group}.separable.{part}");
        let channels = [input, spec.channels];
        Ok(Self {
            depthwise: DepthwiseConv2d::new(params, &part("depthwise"), input, window, 1.0)?,
            pointwise: Conv2d::new(params, &part("pointwise"), channels, point, 1.0)?,
        })
    }

    fn forward(&self, x: &Flow) -> Result<Flow> {
        let x = self.depthwise.forward(x, Activation::Relu)?;
        self.pointwise.forward(&x, Activation::Relu)
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

    fn forward(&self, x: &Flow) -> Result<Flow> {
        let inner = self.expand.forward(x, Activation::Relu)?;
        let inner = self.depthwise.forward(&inner, Activation::Relu)?;
        self.project.forward_onto(&inner, x, Activation::None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{DType, Device};
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    use super::*;
    use crate::architecture::Spec;

    #[test]
    fn pictures_shrink_from_group_to_group() {
        let group = |channels, blocks, stride| MobileNetGroup {
            channels,
            blocks,
            stride,
        };
        let spec = MobileNetSpec {
            samples: 1600,
            classes: 3,
            stem: 4,
            expansion: 2,
            groups: vec![group(6, 1, 2), group(8, 2, 1), group(10, 1, 3)],
            exits: vec![2, 3],
            slices: 100,
        };
        let mut params = Params::fresh(Pcg64::seed_from_u64(1));
        let model = spec.build(&mut params).unwrap();
        let mut x = Tensor::zeros((2, 1600), DType::F32, &Device::Cpu).unwrap();
        // 10 frames by 40 bands, half of that after the stem; every layer is a stage.
        let shapes = [
            [2, 5, 20, 4],
            [2, 3, 10, 6],
            [2, 3, 10, 6],
            [2, 3, 10, 8],
            [2, 3, 10, 8],
            [2, 3, 10, 8],
            [2, 1, 4, 10],
            [2, 1, 4, 10],
        ];
        assert_eq!(model.stages(), shapes.len());
        for (stage, shape) in shapes.iter().enumerate() {
            x = model.run_stage(stage, &x).unwrap();
            assert_eq!(x.dims(), shape);
        }
        assert_eq!(model.head(1, &x).unwrap().dims(), [2, 3]);
        assert_eq!(model.exits(), [6, 8]);
    }
}
