//! Why a profile cannot be used.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a profile cannot be used here.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file is at fault.
    #[error(transparent)]
    File(#[from] ProfileFileError),
    /// It was measured on something else.
    #[error(transparent)]
    Mismatch(#[from] ProfileMismatch),
    /// A confusion matrix is none of the app's.
    #[error("profile: confusion of {cell}: {reason}")]
    Confusion {
        /// Whose, and the class at fault.
        cell: String,
        /// What is wrong.
        reason: String,
    },
    /// Something that is served was not measured.
    #[error("profile: not measured: {cell}")]
    Missing {
        /// What is missing, by name.
        cell: String,
    },
}

/// Why a file is no profile.
#[derive(Debug, Error)]
pub enum ProfileFileError {
    /// It cannot be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is written for another version of the host.
    #[error(
        "{}: field `schema`: {found}, this version reads {oldest} to {newest}",
        file.display()
    )]
    Schema {
        /// Which file.
        file: PathBuf,
        /// Its schema.
        found: u64,
        /// The oldest schema that is read.
        oldest: u64,
        /// The newest.
        newest: u64,
    },
    /// It is not JSON, or a field is unknown, missing or wrong.
    #[error("{}: field `{field}`: {reason}", file.display())]
    Field {
        /// Which file.
        file: PathBuf,
        /// Path of the field, such as `latencies[3].p50_us`; `.` is the whole file.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A profile of something else than what is here.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("profile: `{field}` differs: measured on `{theirs}`, here it is `{ours}`")]
pub struct ProfileMismatch {
    /// What differs.
    pub field: String,
    /// What the profile was measured on.
    pub theirs: String,
    /// What is here.
    pub ours: String,
}

// === impl ProfileFileError ===

impl ProfileFileError {
    pub(super) fn io(file: &Path, source: std::io::Error) -> Self {
        Self::Io {
            file: file.to_path_buf(),
            source,
        }
    }

    pub(super) fn field(file: &Path, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Field {
            file: file.to_path_buf(),
            field: field.into(),
            reason: reason.into(),
        }
    }
}
