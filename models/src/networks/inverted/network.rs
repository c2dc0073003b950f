//! The network of a plan.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::layers::{ClassHead, InvertedUnit};
use super::plan::{COLOURS, ImagePadding, InvertedPlan, TensorNaming};
use crate::error::ModelError;
use crate::networks::slices::in_shares;
use crate::networks::spec::{BadHyperParameter, check_depth, check_range};
use crate::networks::staged::{StagedModel, check_only_exit};
use crate::networks::stages::{StageRange, joined};
use crate::ops::flow::Flow;
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;

/// Largest number of lines and columns of an image; that of EfficientNet-B7 is 600.
const SIZE_MAX: usize = 1024;

/// Checks the hyper-parameters that all of these networks have.
pub(crate) fn check_images(
    size: usize,
    slices: usize,
    layout: TensorNaming,
    padding: ImagePadding,
) -> std::result::Result<(), BadHyperParameter> {
    check_range("size", size, SIZE_MAX)?;
    check_depth("slices", slices)?;
    if layout == TensorNaming::Torchvision && padding == ImagePadding::Same {
        return Err(BadHyperParameter {
            field: "padding".to_owned(),
            reason: "torchvision's weights have \"centred\" padding".to_owned(),
        });
    }
    Ok(())
}

/// The network. Its only exit is after the last stage.
pub(crate) struct InvertedNetwork {
    /// Lines and columns of an image.
    size: usize,
    classes: usize,
    mode: ComputeMode,
    units: Vec<InvertedUnit>,
    head: ClassHead,
    exits: [usize; 1],
    stages: Vec<StageRange>,
}

// === impl InvertedNetwork ===

impl InvertedNetwork {
    pub(crate) fn new(
        params: &mut Params,
        plan: &InvertedPlan,
        size: usize,
        slices: usize,
    ) -> std::result::Result<Self, ModelError> {
        let units = plan.units.iter();
        let units = units.map(|unit| InvertedUnit::new(params, unit, plan.gates, plan.epsilon));
        let units = units.collect::<std::result::Result<_, _>>()?;
        let stages = plan.stages(slices);
        Ok(Self {
            size,
            classes: plan.head.classes,
            mode: params.mode(),
            units,
            head: ClassHead::new(params, &plan.head)?,
            exits: [stages.len()],
            stages,
        })
    }
}

impl StagedModel for InvertedNetwork {
    fn stages(&self) -> usize {
        self.stages.len()
    }

    fn exits(&self) -> &[usize] {
        &self.exits
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        self.run_stages(stage..stage + 1, x)
    }

    fn run_stages(&self, stages: Range<usize>, x: &Tensor) -> Result<Tensor> {
        let stage = joined(&self.stages, stages)?;
        let size = self.size;
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
        self.head.forward(&Flow::images(self.mode, x)?)?.into_rows()
    }
}
