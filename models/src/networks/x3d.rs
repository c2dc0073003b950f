//! A factorised video network in the manner of X3D.
//!
//! Feichtenhofer, "X3D: Expanding Architectures for Efficient Video Recognition" (2020): a stem of
//! a spatial and a depthwise temporal convolution, then bottleneck blocks that widen pointwise,
//! filter depthwise in space and time, and narrow pointwise. Variants differ in frames, resolution,
//! width and depth. The 3 x 3 x 3 depthwise filter is factorised into 1 x 3 x 3 and 3 x 1 x 1. Left
//! out: normalisation, for the reason given in `resnet1d`, and the gates of squeeze and excitation.
//! Heads do not average over all positions, because the height in the image and the time in the
//! clip carry information, and a clip is short.

mod block;
mod trunk;

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

pub use self::block::TrunkStage;
pub(crate) use self::trunk::Trunk;
pub use self::trunk::TrunkSpec;
use super::slices::in_shares;
use super::spec::{BadHyperParameter, Spec, check_exits};
use super::staged::{StagedModel, no_exit, no_stage};
use crate::error::ModelError;
use crate::ops::layers::Linear;
use crate::weights::params::Params;

/// Hyper-parameters of [`X3d`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct X3dSpec {
    /// Classes told apart.
    pub classes: usize,
    /// For each exit, how many stages of the trunk run before it; the last one is all of them.
    pub exits: Vec<usize>,
    /// Everything up to the heads.
    pub trunk: TrunkSpec,
}

/// The network.
pub struct X3d {
    spec: X3dSpec,
    trunk: Trunk,
    heads: Vec<Linear>,
}

// === impl X3dSpec ===

impl Spec for X3dSpec {
    fn input_shape(&self) -> Vec<usize> {
        vec![self.trunk.frames, self.trunk.side, self.trunk.side]
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn exits(&self) -> Vec<usize> {
        self.exits.clone()
    }

    fn check(&self) -> std::result::Result<(), BadHyperParameter> {
        self.trunk.check("trunk")?;
        check_exits(&self.exits, self.trunk.stages.len())
    }

    fn build(&self, params: &mut Params) -> std::result::Result<Box<dyn StagedModel>, ModelError> {
        let trunk = Trunk::new(params, "", &self.trunk)?;
        let head = |(i, &after): (usize, &usize)| {
            let features = self.trunk.features(after - 1);
            Linear::new(params, &format!("exit{i}"), features, self.classes)
        };
        Ok(Box::new(X3d {
            spec: self.clone(),
            heads: self
                .exits
                .iter()
                .enumerate()
                .map(head)
                .collect::<std::result::Result<_, _>>()?,
            trunk,
        }))
    }
}

// === impl X3d ===

impl StagedModel for X3d {
    fn stages(&self) -> usize {
        self.trunk.stages()
    }

    fn exits(&self) -> &[usize] {
        &self.spec.exits
    }

    fn classes(&self) -> usize {
        self.spec.classes
    }

    fn run_stage(&self, stage: usize, x: &Tensor) -> Result<Tensor> {
        if stage >= self.stages() {
            return no_stage(stage, self.stages());
        }
        in_shares(x, self.trunk.width(stage), self.trunk.mode(), |x| {
            self.trunk.run_stage(stage, x)
        })
    }

    fn logits(&self, exit: usize, x: &Tensor) -> Result<Tensor> {
        let Some(head) = self.heads.get(exit) else {
            return no_exit(exit, self.heads.len());
        };
        head.forward(&self.trunk.pool(x)?)
    }
}

#[cfg(test)]
mod tests;
