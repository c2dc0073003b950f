//! Why a layout cannot be imported.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::error::ProfileFileError;

/// Why a layout cannot be imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be read, or a field of it is at fault.
    #[error(transparent)]
    File(#[from] ProfileFileError),
    /// A line of a table is at fault.
    #[error("{}:{line}: {reason}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The reason.
        reason: String,
    },
    /// The layout is unknown or not complete.
    #[error("{}: {reason}", path.display())]
    Layout {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

// === impl ImportError ===

impl ImportError {
    pub(super) fn layout(path: &Path, reason: impl Into<String>) -> Self {
        Self::Layout {
            path: path.to_path_buf(),
            reason: reason.into(),
        }
    }

    pub(super) fn line(file: &Path, line: u64, reason: impl Into<String>) -> Self {
        Self::Line {
            file: file.to_path_buf(),
            line,
            reason: reason.into(),
        }
    }
}
