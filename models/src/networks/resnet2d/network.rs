//! The network of residual blocks.

use std::ops::Range;

use candle_core::{Result, Tensor};
use switchyard_kernels::{Activation, Window2d};

use super::plan::{BlockPlan, COLOURS};
use super::spec::{BlockKind, ResNet2dSpec};
use super::tensors::ResNet2dTensors;
use crate::error::ModelError;
use crate::networks::slices::in_shares;
use crate::networks::spec::{
    BadHyperParameter, Spec, check_depth, check_exits, check_group, check_range, check_size,
};
use crate::networks::staged::{StagedModel, no_exit};
use crate::networks::stages::{StageRange, joined, stage_ranges};
use crate::ops::flow::Flow;
use crate::ops::layers::{Conv2d, Linear};
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

/// Largest number of lines and columns of an image.
const SIZE_MAX: usize = 1024;

/// The network.
pub struct ResNet2d {
    spec: ResNet2dSpec,
    mode: ComputeMode,
    stem: Conv2d,
    blocks: Vec<ResNet2dBlock>,
    heads: Vec<Linear>,
    exits: Vec<usize>,
    stages: Vec<StageRange>,
}

/// `relu(skip(x) + last(convs(x)))`, with a ReLU after each of `convs`.
struct ResNet2dBlock {
    convs: Vec<Conv2d>,
    last: Conv2d,
    /// Present if the block changes the width or the resolution.
    skip: Option<Conv2d>,
}

// === impl ResNet2dSpec ===

impl Spec for ResNet2dSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![COLOURS, self.size, self.size]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        self.exits_after()
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        check_range("size", self.size, SIZE_MAX)?;
        check_depth("slices", self.slices)?;
        check_size("stem.channels", self.stem.channels)?;
        check_size("stem.stride", self.stem.stride)?;
        check_size("stem.kernel", self.stem.kernel)?;
        if self.stem.kernel.is_multiple_of(2) {
            return Err(BadHyperParameter {
                field: "stem.kernel".to_owned(),
                reason: format!("{} is not odd", self.stem.kernel),
            });
        }
        check_depth("groups", self.groups.len())?;
        for (i, group) in self.groups.iter().enumerate() {
            check_group(i, [group.channels, group.blocks, group.stride])?;
        }
        check_exits(&self.exits, self.groups.len())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        Ok(Box::new(ResNet2d::new(params, self)?))
    }
}

// === impl ResNet2d ===

impl ResNet2d {
    pub(crate) fn new(
        params: &mut Params,
        spec: &ResNet2dSpec,
    ) -> std::result::Result<Self, ModelError> {
        let mode = params.mode();
        let mut source = ResNet2dTensors::new(params, spec.layout);
        let stem = source.stem(&spec.stem)?;
        let plans = spec.block_plans();
        let blocks = plans
            .iter()
            .map(|plan| ResNet2dBlock::new(&mut source, spec.block, plan))
            .collect::<std::result::Result<_, _>>()?;
        let heads = spec
            .exits
            .iter()
            .map(|&group| {
                let width = spec.block.output(spec.groups[group - 1].channels);
                source.head(group, group == spec.groups.len(), [width, spec.classes])
            })
            .collect::<std::result::Result<_, _>>()?;
        for group in 1..=spec.groups.len() {
            if !spec.exits.contains(&group) {
                source.leave_head(group);
            }
        }
        let mut widths: Vec<usize> = plans.iter().map(|plan| plan.width).collect();
        // The first stage has the stem in front.
        widths[0] = widths[0].max(spec.stem_width());
        let stages = stage_ranges(&spec.stage_ends(), &widths);
        Ok(Self {
            spec: spec.clone(),
            mode,
            stem,
            blocks,
            heads,
            exits: spec.exits_after(),
            stages,
        })
    }

    /// `[batch, 3 * size * size]`, channels first as clients send it, to the first block's input.
    fn begin(&self, x: &Tensor) -> Result<Flow> {
        let size = self.spec.size;
        let image = Flow::planes(self.mode, x, [COLOURS, size, size])?;
        let x = self.stem.forward(&image, Activation::Relu)?;
        if self.spec.stem.pool {
            return x.max_pool(Window2d::centred(3, 2));
        }
        Ok(x)
    }
}

impl StagedModel for ResNet2d {
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
        let stage = joined(&self.stages, stages)?;
        in_shares(x, stage.width, self.mode, |x| {
            let mut x = match stage.units.start {
                0 => self.begin(x)?,
                _ => Flow::images(self.mode, x)?,
            };
            for block in &self.blocks[stage.units.clone()] {
                x = block.forward(&x)?;
            }
            x.into_images()
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            return no_exit(exit, self.heads.len());
        };
        let pooled = Flow::images(self.mode, x)?.mean_pool()?;
        head.forward_rows(&pooled, Activation::None)?.into_rows()
    }
}

// === impl ResNet2dBlock ===

impl ResNet2dBlock {
    fn new(
        source: &mut ResNet2dTensors,
        kind: BlockKind,
        plan: &BlockPlan,
    ) -> std::result::Result<Self, ModelError> {
        let shapes = kind.convs(plan);
        let last = shapes.len() - 1;
        let mut conv = |i: usize| source.conv(plan, i, i == last, &shapes[i]);
        let convs = (0..last)
            .map(&mut conv)
            .collect::<std::result::Result<_, _>>()?;
        let last = conv(last)?;
        let output = kind.output(plan.channels);
        let skip = if plan.stride != 1 || plan.input != output {
            Some(source.skip(plan, output)?)
        } else {
            None
        };
        Ok(Self { convs, last, skip })
    }

    fn forward(&self, x: &Flow) -> Result<Flow> {
        let mut inner = None;
        for conv in &self.convs {
            inner = Some(conv.forward(inner.as_ref().unwrap_or(x), Activation::Relu)?);
        }
        let inner = inner.as_ref().unwrap_or(x);
        match &self.skip {
            Some(skip) => {
                let onto = skip.forward(x, Activation::None)?;
                self.last.forward_onto(inner, &onto, Activation::Relu)
            }
            None => self.last.forward_onto(inner, x, Activation::Relu),
        }
    }
}
