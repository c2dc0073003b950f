//! The network of a MobileNet.

use std::ops::Range;

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, Window2d};

use super::plan::{KERNEL, LayerKind, STEM_STRIDE};
use super::spec::{MobileNetGroup, MobileNetSpec};
use crate::error::ModelError;
use crate::features::logmel;
use crate::networks::slices::in_shares;
use crate::networks::spec::{
    BadHyperParameter, Spec, check_depth, check_exits, check_group, check_size,
};
use crate::networks::staged::{StagedModel, no_exit};
use crate::networks::stages::{StageRange, joined, stage_ranges};
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv2d, DepthwiseConv2d, Linear};
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

/// Standard deviation of a residual block's last convolution, relative to He's.
const RESIDUAL_GAIN: f64 = 0.1;

/// The network.
pub struct MobileNet {
    spec: MobileNetSpec,
    mode: ComputeMode,
    layers: Vec<MobileNetLayer>,
    stages: Vec<StageRange>,
    exits: Vec<usize>,
    heads: Vec<Linear>,
}

/// A part of the network that cannot be cut.
enum MobileNetLayer {
    Stem(Conv2d),
    Separable(Separable),
    Residual(ResidualBlock),
}

/// `relu(pointwise(relu(depthwise(x))))`.
struct Separable {
    depthwise: DepthwiseConv2d,
    pointwise: Conv2d,
}

/// `x + project(relu(depthwise(relu(expand(x)))))`.
struct ResidualBlock {
    expand: Conv2d,
    depthwise: DepthwiseConv2d,
    project: Conv2d,
}

// === impl MobileNetSpec ===

impl Spec for MobileNetSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![self.samples]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        self.exits_after()
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_size("stem", self.stem)?;
        check_size("expansion", self.expansion)?;
        check_depth("slices", self.slices)?;
        check_depth("groups", self.groups.len())?;
        for (i, group) in self.groups.iter().enumerate() {
            check_group(i, [group.channels, group.blocks, group.stride])?;
        }
        check_exits(&self.exits, self.groups.len())
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
        let plan = spec.layer_plans();
        let layers = plan
            .iter()
            .map(|layer| MobileNetLayer::new(params, spec, layer.kind))
            .collect::<std::result::Result<_, _>>()?;
        let widths: Vec<usize> = plan.iter().map(|layer| layer.width).collect();
        let stages = stage_ranges(&spec.stage_ends(), &widths);
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
        self.run_stages(stage..stage + 1, x)
    }

    fn run_stages(&self, stages: Range<usize>, x: &Tensor) -> Result<Tensor> {
        let range = joined(&self.stages, stages)?;
        in_shares(x, range.width, self.mode, |x| {
            let mut x = if range.units.start == 0 {
                let image = logmel::of_input(x, self.spec.samples)?.unsqueeze(3)?;
                Flow::images(self.mode, &image)?
            } else {
                Flow::images(self.mode, x)?
            };
            for layer in &self.layers[range.units.clone()] {
                x = layer.forward(&x)?;
            }
            x.into_images()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            return no_exit(exit, self.heads.len());
        };
        let pooled = Flow::images(self.mode, x)?.relu()?.mean_pool()?;
        head.forward_rows(&pooled, Activation::None)?.into_rows()
    }
}

// === impl MobileNetLayer ===

impl MobileNetLayer {
    fn new(
        params: &mut Params,
        spec: &MobileNetSpec,
        kind: LayerKind,
    ) -> std::result::Result<Self, ModelError> {
        Ok(match kind {
            LayerKind::Stem => {
                let window = Window2d::centred(KERNEL, STEM_STRIDE);
                Self::Stem(Conv2d::new(params, "stem", [1, spec.stem], window, 1.0)?)
            }
            LayerKind::Separable { group } => {
                let input = spec.input(group);
                Self::Separable(Separable::new(params, group, input, spec.groups[group])?)
            }
            LayerKind::Block { group, block } => {
                let name = format!("group{group}.block{block}");
                let channels = spec.groups[group].channels;
                Self::Residual(ResidualBlock::new(params, &name, channels, spec.expansion)?)
            }
        })
    }

    fn forward(&self, x: &Flow) -> Result<Flow> {
        match self {
            Self::Stem(stem) => stem.forward(x, Activation::Relu),
            Self::Separable(separable) => separable.forward(x),
            Self::Residual(block) => block.forward(x),
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

// === impl ResidualBlock ===

impl ResidualBlock {
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
