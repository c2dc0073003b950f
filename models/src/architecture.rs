//! The closed set of architectures a card may name.

use serde::{Deserialize, Serialize};

use crate::bert::{Bert, BertSpec};
use crate::cnn1d::{Cnn1d, Cnn1dSpec, ConvSpec};
use crate::error::ModelError;
use crate::model::StagedModel;
use crate::params::Params;
use crate::resnet1d::{ResNet1d, ResNet1dSpec};

/// Largest value of any single hyper-parameter, so that a hostile card cannot make a shape
/// overflow.
pub(crate) const HYPER_PARAMETER_MAX: usize = 1 << 16;

/// Most layers or blocks in one list or stage.
pub(crate) const DEPTH_MAX: usize = 256;

/// Architecture name and hyper-parameters, as written in `model.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Architecture {
    /// [`Bert`].
    Bert(BertSpec),
    /// [`Cnn1d`].
    Cnn1d(Cnn1dSpec),
    /// [`ResNet1d`].
    ResNet1d(ResNet1dSpec),
}

/// A hyper-parameter that cannot be: dotted path below `architecture`, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadHyperParameter {
    pub(crate) field: String,
    pub(crate) reason: String,
}

// === impl Architecture ===

impl Architecture {
    /// Samples of one input.
    pub fn samples(&self) -> usize {
        match self {
            Self::Bert(spec) => spec.max_tokens,
            Self::Cnn1d(spec) => spec.samples,
            Self::ResNet1d(spec) => spec.samples,
        }
    }

    /// Classes told apart.
    pub fn classes(&self) -> usize {
        match self {
            Self::Bert(spec) => spec.classes(),
            Self::Cnn1d(spec) => spec.classes,
            Self::ResNet1d(spec) => spec.classes,
        }
    }

    /// Whether requests are texts.
    pub fn takes_text(&self) -> bool {
        matches!(self, Self::Bert(_))
    }

    /// Numbers of an answer that is a vector and no class.
    pub fn embedding(&self) -> Option<usize> {
        match self {
            Self::Bert(spec) => spec.embedding(),
            _ => None,
        }
    }

    /// For each exit, how many stages run before it.
    pub fn exits(&self) -> Vec<usize> {
        match self {
            Self::Bert(spec) => vec![spec.stages()],
            Self::Cnn1d(spec) => vec![spec.layers.len()],
            Self::ResNet1d(spec) => (1..=spec.stages.len()).collect(),
        }
    }

    /// Checks every hyper-parameter; after this, building cannot overflow or divide by zero.
    pub(crate) fn check(&self) -> Result<(), BadHyperParameter> {
        in_range("samples", self.samples(), HYPER_PARAMETER_MAX)?;
        in_range("classes", self.classes(), HYPER_PARAMETER_MAX)?;
        match self {
            Self::Bert(spec) => spec.check()?,
            Self::Cnn1d(spec) => {
                in_range("layers", spec.layers.len(), DEPTH_MAX)?;
                for (i, layer) in spec.layers.iter().enumerate() {
                    check_conv(&format!("layers[{i}]"), layer)?;
                }
            }
            Self::ResNet1d(spec) => {
                check_conv("stem", &spec.stem)?;
                in_range("stages", spec.stages.len(), DEPTH_MAX)?;
                for (i, stage) in spec.stages.iter().enumerate() {
                    let at = format!("stages[{i}]");
                    in_range(
                        &format!("{at}.channels"),
                        stage.channels,
                        HYPER_PARAMETER_MAX,
                    )?;
                    in_range(&format!("{at}.blocks"), stage.blocks, DEPTH_MAX)?;
                    in_range(&format!("{at}.kernel"), stage.kernel, HYPER_PARAMETER_MAX)?;
                    in_range(&format!("{at}.stride"), stage.stride, HYPER_PARAMETER_MAX)?;
                }
            }
        }
        Ok(())
    }

    /// Builds the network; [`check`](Self::check) must have passed.
    pub(crate) fn build(&self, params: &mut Params) -> Result<Box<dyn StagedModel>, ModelError> {
        Ok(match self {
            Self::Bert(spec) => Box::new(Bert::new(params, spec)?),
            Self::Cnn1d(spec) => Box::new(Cnn1d::new(params, spec)?),
            Self::ResNet1d(spec) => Box::new(ResNet1d::new(params, spec)?),
        })
    }
}

fn check_conv(at: &str, conv: &ConvSpec) -> Result<(), BadHyperParameter> {
    in_range(
        &format!("{at}.channels"),
        conv.channels,
        HYPER_PARAMETER_MAX,
    )?;
    in_range(&format!("{at}.stride"), conv.stride, HYPER_PARAMETER_MAX)?;
    in_range(&format!("{at}.kernel"), conv.kernel, HYPER_PARAMETER_MAX)?;
    if !conv.kernel.is_multiple_of(conv.stride) {
        return Err(BadHyperParameter {
            field: format!("{at}.kernel"),
            reason: format!("{} is no multiple of stride {}", conv.kernel, conv.stride),
        });
    }
    Ok(())
}

pub(crate) fn in_range(field: &str, value: usize, max: usize) -> Result<(), BadHyperParameter> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(BadHyperParameter {
        field: field.to_owned(),
        reason: format!("{value} is not in 1..={max}"),
    })
}
