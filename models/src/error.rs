//! The one error of this crate.

use std::path::{Path, PathBuf};

/// Why a card, a weights file, a computation or a training run could not be used.
///
/// Every variant names the file or the computation at fault, so that an operator can act on the
/// text alone.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file or folder could not be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A card is not TOML, or has an unknown, missing or mistyped field.
    #[error("{}: {source}", file.display())]
    CardSyntax {
        /// The card.
        file: PathBuf,
        /// Where and why, with the offending line.
        source: Box<toml::de::Error>,
    },
    /// A field of a card has a value that cannot be.
    #[error("{}: field `{field}`: {reason}", file.display())]
    CardField {
        /// The card.
        file: PathBuf,
        /// Dotted path of the field, for example `exits[1].recall`.
        field: String,
        /// Why it was refused.
        reason: String,
    },
    /// A tensor file is no safetensors file, or ends early.
    #[error("{}: {reason}", file.display())]
    Weights {
        /// The tensor file.
        file: PathBuf,
        /// Why it was refused.
        reason: String,
    },
    /// A tensor is missing, left over, or of another shape or type than the architecture needs.
    #[error("{}: tensor `{tensor}`: {reason}", file.display())]
    Tensor {
        /// The tensor file.
        file: PathBuf,
        /// Name of the tensor.
        tensor: String,
        /// Why it was refused.
        reason: String,
    },
    /// An option of a training run cannot be.
    #[error("training: {0}")]
    Training(String),
    /// A tensor computation failed.
    #[error("{what}: {source}")]
    Compute {
        /// What was being computed.
        what: String,
        /// What candle said.
        source: candle_core::Error,
    },
}

impl ModelError {
    pub(crate) fn io(file: &Path, source: std::io::Error) -> Self {
        Self::Io {
            file: file.to_path_buf(),
            source,
        }
    }

    pub(crate) fn field(file: &Path, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::CardField {
            file: file.to_path_buf(),
            field: field.into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn weights(file: &Path, reason: impl Into<String>) -> Self {
        Self::Weights {
            file: file.to_path_buf(),
            reason: reason.into(),
        }
    }

    pub(crate) fn tensor(file: &Path, tensor: &str, reason: impl Into<String>) -> Self {
        Self::Tensor {
            file: file.to_path_buf(),
            tensor: tensor.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn compute(what: impl Into<String>) -> impl FnOnce(candle_core::Error) -> Self {
        let what = what.into();
        move |source| Self::Compute { what, source }
    }
}
