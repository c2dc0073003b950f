//! EfficientNet B0 to B7 with public weights, in timm's or torchvision's naming (Tan and Le,
//! "EfficientNet: rethinking model scaling for convolutional neural networks", 2019).
//!
//! A stem, inverted residual blocks with squeeze-and-excitation, a last pointwise convolution and
//! a pooled linear head. Batch normalisation is folded as the weights load. A block cannot be cut;
//! blocks are grouped into stages of similar cost. Weights that TensorFlow trained (timm's `tf_`)
//! pad pictures unevenly and are not meant.

mod excite;
mod spec;
mod tensors;

use candle_core::{Result, Tensor};

pub use spec::{EfficientNetSpec, Scale, TensorNaming};

use self::excite::Excite;
use self::spec::{COLOURS, Plan, Unit};
use self::tensors::Source;
use crate::error::ModelError;
use crate::flow::{Flow, Mode};
use crate::kernels::Activation;
use crate::layers::Linear;
use crate::layers2d::{Conv2d, DepthwiseConv2d};
use crate::model::{StagedModel, in_shares};
use crate::params::Params;

/// The network.
pub struct EfficientNet {
    spec: EfficientNetSpec,
    mode: Mode,
    units: Vec<Part>,
    head: Linear,
    exits: Vec<usize>,
    stages: Vec<Stage>,
}

/// A run of units.
struct Stage {
    first: usize,
    end: usize,
    /// Largest number of activations per image inside.
    width: usize,
}

/// What cannot be cut.
enum Part {
    /// The stem and the last pointwise convolution: `silu(conv(x))`.
    Conv(Conv2d),
    Block(Box<Block>),
}

/// `project(excite(silu(depthwise(silu(expand(x))))))`, plus `x` where the shapes are the same.
struct Block {
    /// Absent where the block is as wide inside as its input.
    expand: Option<Conv2d>,
    depthwise: DepthwiseConv2d,
    excite: Excite,
    project: Conv2d,
    residual: bool,
}

// === impl EfficientNet ===

impl EfficientNet {
    pub(crate) fn new(
        params: &mut Params,
        spec: &EfficientNetSpec,
    ) -> std::result::Result<Self, ModelError> {
        let plan = Plan::new(spec);
        let mode = params.mode();
        let mut source = Source::new(params, spec);
        let units = plan
            .units
            .iter()
            .map(|unit| Part::new(&mut source, unit))
            .collect::<std::result::Result<_, _>>()?;
        let head = source.head([plan.features, spec.classes])?;
        let mut first = 0;
        let mut stages = Vec::new();
        for end in plan.stage_ends(spec.slices) {
            let widths = plan.units[first..end].iter().map(|unit| unit.width);
            stages.push(Stage {
                first,
                end,
                width: widths.fold(1, usize::max),
            });
            first = end;
        }
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
            candle_core::bail!("stage {stage} of {}", self.stages.len());
        };
        let size = self.spec.size;
        in_shares(x, stage.width, self.mode, |x| {
            let mut x = match stage.first {
                0 => self.mode.planes(x, [COLOURS, size, size])?,
                _ => self.mode.pictures(x)?,
            };
            for unit in &self.units[stage.first..stage.end] {
                x = unit.forward(&x)?;
            }
            x.into_pictures()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        if exit != 0 {
            candle_core::bail!("exit {exit} of 1");
        }
        let pooled = self.mode.pictures(x)?.mean_pool()?;
        let logits = self.head.forward_rows(&pooled, Activation::None)?;
        logits.into_rows()
    }
}

// === impl Part ===

impl Part {
    fn new(source: &mut Source, unit: &Unit) -> std::result::Result<Self, ModelError> {
        Ok(match unit.block {
            None => Self::Conv(source.conv(unit)?),
            Some(block) => Self::Block(Box::new(Block {
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
            Self::Block(block) => block.forward(x),
        }
    }
}

// === impl Block ===

impl Block {
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
