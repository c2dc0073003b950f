//! Why the demo ended early.

use std::fmt::Display;

use thiserror::Error;

/// Why the demo ended early.
#[derive(Debug, Error)]
pub(crate) enum DemoError {
    /// Models, policies or profile cannot be used.
    #[error("{0}")]
    Input(String),
    /// The server failed.
    #[error("the server {0}")]
    Server(String),
}

// === impl DemoError ===

impl DemoError {
    /// An input that cannot be used.
    pub(super) fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }
}
