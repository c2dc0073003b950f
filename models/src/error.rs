//! The error of this crate.

use std::path::{Path, PathBuf};

/// The reason why a card, a weights file, a computation or a training run failed.
///
/// Every variant names the file or the computation at fault, so that the text alone tells an
/// operator where to look.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file or folder could not be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A card is not TOML, or has an unknown, missing or mistyped field.
    #[error("{}: {}", file.display(), short_lines(source))]
    CardSyntax {
        /// The card.
        file: PathBuf,
        /// Where and why, with the offending line.
        source: Box<toml::de::Error>,
    },
    /// A field of a card has a value that is not allowed.
    #[error("{}: field `{field}`: {reason}", file.display())]
    CardField {
        /// The card.
        file: PathBuf,
        /// Dotted path of the field, for example `exits[1].recall`.
        field: String,
        /// Why it was refused.
        reason: String,
    },
    /// A tensor file is not a safetensors file, or ends early.
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
    /// An option of a training run is not allowed.
    #[error("training: {0}")]
    Training(String),
    /// A tensor computation failed.
    #[error("{computation}: {source}")]
    Compute {
        /// Name of the computation.
        computation: String,
        /// candle's reason.
        source: candle_core::Error,
    },
}

// === impl ModelError ===

impl ModelError {
    /// `file` could not be read or written.
    pub fn io(file: &Path, source: std::io::Error) -> Self {
        Self::Io {
            file: file.to_path_buf(),
            source,
        }
    }

    /// The field at the dotted path `field` of the card `file` was refused.
    pub fn field(file: &Path, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::CardField {
            file: file.to_path_buf(),
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// The tensor file `file` was refused.
    pub fn weights(file: &Path, reason: impl Into<String>) -> Self {
        Self::Weights {
            file: file.to_path_buf(),
            reason: reason.into(),
        }
    }

    /// One tensor of the tensor file `file` was refused.
    pub fn tensor(file: &Path, tensor: &str, reason: impl Into<String>) -> Self {
        Self::Tensor {
            file: file.to_path_buf(),
            tensor: tensor.to_owned(),
            reason: reason.into(),
        }
    }

    /// Turns candle's error into one that names the computation.
    pub fn compute(computation: impl Into<String>) -> impl FnOnce(candle_core::Error) -> Self {
        let computation = computation.into();
        move |source| Self::Compute {
            computation,
            source,
        }
    }
}

/// Most characters of a line of a card that a message shows.
const LINE_MAX: usize = 200;

/// The message quotes lines of the card, which may be of any length.
fn short_lines(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let lines = text
        .lines()
        .map(|line| match line.char_indices().nth(LINE_MAX) {
            None => line.to_owned(),
            Some((end, _)) => format!("{}...", &line[..end]),
        });
    lines.collect::<Vec<_>>().join("\n")
}
