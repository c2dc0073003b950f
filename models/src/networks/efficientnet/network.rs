//! The network of an EfficientNet.

use candle_core::{Result, Tensor};
use switchyard_kernels::Activation;

use super::excite::Excite;
use super::plan::{COLOURS, EfficientNetPlan, UnitPlan};
use super::spec::EfficientNetSpec;
use super::tensors::EfficientNetTensors;
use crate::error::ModelError;
use crate::networks::slices::in_shares;
use crate::networks::spec::{BadHyperParameter, Spec, check_depth, check_range};
use crate::networks::staged::{StagedModel, check_only_exit, no_stage};
use crate::networks::stages::{StageRange, stage_ranges};
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv2d, DepthwiseConv2d, Linear};
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

/// Largest number of lines and columns of an image; B7's is 600.
const SIZE_MAX: usize = 1024;

/// The network.
pub struct EfficientNet {
    spec: EfficientNetSpec,
    mode: ComputeMode,
    units: Vec<EfficientNetUnit>,
    head: Linear,
    exits: Vec<usize>,
    stages: Vec<StageRange>,
}

/// A part of the network that cannot be cut.
enum EfficientNetUnit {
    /// The stem and the last pointwise convolution: `silu(conv(x))`.
    Conv(Conv2d),
    MbConv(Box<MbConvBlock>),
}

/// `project(excite(silu(depthwise(silu(expand(x))))))`, plus `x` where the shapes are the same.
struct MbConvBlock {
    /// Absent if the block is as wide inside as its input.
    expand: Option<Conv2d>,
    depthwise: DepthwiseConv2d,
    excite: Excite,
    project: Conv2d,
    residual: bool,
}

// === impl EfficientNetSpec ===

impl Spec for EfficientNetSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![COLOURS, self.size, self.size]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        vec![EfficientNetPlan::new(self).stage_ends(self.slices).len()]
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_range("size", self.size, SIZE_MAX)?;
        check_depth("slices", self.slices)
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(EfficientNet::new(params, self)?))
    }
}

// === impl EfficientNet ===

impl EfficientNet {
    pub(crate) fn new(
        params: &mut Params,
        spec: &EfficientNetSpec,
    ) -> std::result::Result<Self, ModelError> {
        let plan = EfficientNetPlan::new(spec);
        let mode = params.mode();
        let mut source = EfficientNetTensors::new(params, spec);
        let units = plan
            .units
            .iter()
            .map(|unit| EfficientNetUnit::new(&mut source, unit))
            .collect::<std::result::Result<_, _>>()?;
        let head = source.head([plan.features, spec.classes])?;
        let widths: Vec<usize> = plan.units.iter().map(|unit| unit.width).collect();
        let stages = stage_ranges(&plan.stage_ends(spec.slices), &widths);
        Ok(Self {
            spec: spec.clone(),
            mode,
            units,
            head,
            exits: vec![stages.len()],
            stages,
        })
    }
}

impl StagedModel for EfficientNet {
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
        let Some(stage) = self.stages.get(stage) else {
            return no_stage(stage, self.stages.len());
        };
        let size = self.spec.size;
        in_shares(x, stage.width, self.mode, |x| {
            let mut x = match stage.units.start {
                0 => Flow::planes(self.mode, x, [COLOURS, size, size])?,
                _ => Flow::images(self.mode, x)?,
            };
            for unit in &self.units[stage.units.clone()] {
                x = unit.forward(&x)?;
            }
            x.into_images()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        check_only_exit(exit)?;
        let pooled = Flow::images(self.mode, x)?.mean_pool()?;
        let logits = self.head.forward_rows(&pooled, Activation::None)?;
        logits.into_rows()
    }
}

// === impl EfficientNetUnit ===

impl EfficientNetUnit {
    fn new(
        source: &mut EfficientNetTensors,
        unit: &UnitPlan,
    ) -> std::result::Result<Self, ModelError> {
        Ok(match unit.block {
            None => Self::Conv(source.conv(unit)?),
            Some(block) => Self::MbConv(Box::new(MbConvBlock {
                expand: source.expand(unit, &block)?,
                depthwise: source.depthwise(unit, &block)?,
                excite: source.excite(unit, &block)?,
                project: source.project(unit, &block)?,
                residual: unit.stride == 1 && unit.input == unit.output,
            })),
        })
    }

    fn forward(&self, x: &Flow) -> Result<Flow> {
        match self {
            Self::Conv(conv) => conv.forward(x, Activation::Silu),
            Self::MbConv(block) => block.forward(x),
        }
    }
}

// === impl MbConvBlock ===

impl MbConvBlock {
    fn forward(&self, x: &Flow) -> Result<Flow> {
        let inner = match &self.expand {
            Some(expand) => {
                let wide = expand.forward(x, Activation::Silu)?;
                self.depthwise.forward(&wide, Activation::Silu)?
            }
            None => self.depthwise.forward(x, Activation::Silu)?,
        };
        let inner = self.excite.forward(inner)?;
        if self.residual {
            return self.project.forward_onto(&inner, x, Activation::None);
        }
        self.project.forward(&inner, Activation::None)
    }
}
