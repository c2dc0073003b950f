//! Why an input is refused.

use std::fmt::Display;

use thiserror::Error;

/// An input cannot be used. The message names the file or field, its value and the allowed range.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct InputError(String);

// === impl InputError ===

impl InputError {
    /// With the message of another error, or of its own.
    pub fn new(error: impl Display) -> Self {
        Self(error.to_string())
    }
}
