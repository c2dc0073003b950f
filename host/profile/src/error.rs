//! Why a profile cannot be used.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a profile cannot be used here.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// The file is at fault.
    #[error(transparent)]
    File(#[from] ProfileFileError),
    /// It was measured on another machine, or the variant has changed since.
    #[error(transparent)]
    Mismatch(#[from] ProfileMismatch),
    /// A confusion matrix does not fit the app's classes.
    #[error("profile: confusion of {cell}: {reason}")]
    Confusion {
        /// App, variant, exit and the class at fault.
        cell: String,
        /// The reason.
        reason: String,
    },
    /// The profile lacks a cell that serving needs.
    #[error("profile: not measured: {cell}")]
    Missing {
        /// The missing cell, by name.
        cell: String,
    },
}

/// Why a file is not a profile.
#[derive(Debug, Error)]
pub enum ProfileFileError {
    /// It cannot be read or written.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// It has a schema that this version does not read.
    #[error(
        "{}: field `schema`: {found}, this version reads {oldest} to {newest}",
        file.display()
    )]
    Schema {
        /// The file.
        file: PathBuf,
        /// Its schema.
        found: u64,
        /// The oldest schema that is read.
        oldest: u64,
        /// The newest schema that is read.
        newest: u64,
    },
    /// It is not JSON, or a field is unknown, missing or wrong.
    #[error("{}: field `{field}`: {reason}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// Path of the field, such as `latencies[3].p50_us`; `.` is the whole file.
        field: String,
        /// The reason.
        reason: String,
    },
}

/// A field in which the profile differs from this machine or from the variants here.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("profile: `{field}` differs: measured on `{theirs}`, here it is `{ours}`")]
pub struct ProfileMismatch {
    /// The field.
    pub field: String,
    /// Its value in the profile.
    pub theirs: String,
    /// Its value here.
    pub ours: String,
}

// === impl ProfileFileError ===

impl ProfileFileError {
    pub(crate) fn io(file: &Path, source: std::io::Error) -> Self {
        Self::Io {
            file: file.to_path_buf(),
            source,
        }
    }

    pub(crate) fn field(file: &Path, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Field {
            file: file.to_path_buf(),
            field: field.into(),
            reason: reason.into(),
        }
    }
}
