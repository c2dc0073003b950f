//! Features of a request, from which its evidence is computed.
//!
//! A linear embedding of raw samples tells little if a class is a matter of texture or time. These
//! cheap, fixed functions convert such an input so that near features mean a likely equal class.
//! They run on the ingress path, not in the scheduler's turn: each states its cost.

pub mod figure;
pub(crate) mod logmel;
pub mod motion;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A fixed function from a request's inputs to the values that are embedded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// All input values unchanged.
    #[default]
    Raw,
    /// For 16 kHz audio: log-mel bands, pooled over four quarters of the clip's loudness. Costs
    /// about 0.04 ms for a second of audio on one core.
    LogMel,
    /// Outline and filling of the figure in an image of the image application, independent of its
    /// rotation.
    Figure,
    /// Extremes of the accelerations, and position and spread of the silhouettes, of the fall
    /// application's inputs.
    Motion,
}

// === impl Features ===

impl Features {
    /// Number of features of `samples` input values.
    pub fn width(&self, samples: usize) -> usize {
        match self {
            Self::Raw => samples,
            Self::LogMel => logmel::POOLED,
            Self::Figure => figure::FEATURES,
            Self::Motion => motion::FEATURES,
        }
    }

    /// The features of an input.
    pub fn of<'a>(&self, input: &'a [f32]) -> Cow<'a, [f32]> {
        match self {
            Self::Raw => Cow::Borrowed(input),
            Self::LogMel => Cow::Owned(logmel::pooled(input)),
            Self::Figure => Cow::Owned(figure::summary(input)),
            Self::Motion => Cow::Owned(motion::summary(input)),
        }
    }
}
