//! What of a request its evidence embeds.
//!
//! A linear embedding of raw samples tells little where a class is a matter of texture or time;
//! these cheap, fixed functions put such an input into a form in which neighbours mean something.
//! They run on the ingress path, off the scheduler's: each says what it costs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::fall::{SUMMARY, summary};
use crate::{images, logmel};

/// A fixed function from a request's inputs to the numbers that are embedded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// The numbers of all inputs as they are.
    #[default]
    Raw,
    /// For 16 kHz audio: log-mel bands, pooled over the quarters of what stands out of a clip.
    /// Costs 0.25 ms for a second of audio on one core.
    LogMel,
    /// Outline and filling of the figure in a picture of the image application, whichever way it
    /// is turned.
    Figure,
    /// Extremes of the accelerations, and place and spread of the silhouettes, of the fall
    /// application's inputs.
    Motion,
}

// === impl Features ===

impl Features {
    /// How many numbers come of `samples` input numbers.
    pub fn width(&self, samples: usize) -> usize {
        match self {
            Self::Raw => samples,
            Self::LogMel => logmel::POOLED,
            Self::Figure => images::SUMMARY,
            Self::Motion => SUMMARY,
        }
    }

    /// The features of an input.
    pub fn of<'a>(&self, input: &'a [f32]) -> Cow<'a, [f32]> {
        match self {
            Self::Raw => Cow::Borrowed(input),
            Self::LogMel => Cow::Owned(logmel::pooled(input)),
            Self::Figure => Cow::Owned(images::summary(input)),
            Self::Motion => Cow::Owned(summary(input)),
        }
    }
}
