//! Reasons to refuse a workload.

use thiserror::Error;

/// Why a workload cannot be run; every message names the part that is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// An unknown word.
    #[error("workload: {part}: `{found}` is unknown; use one of {expected}")]
    Unknown {
        /// The part of the spec.
        part: String,
        /// The word.
        found: String,
        /// The known words.
        expected: &'static str,
    },
    /// A number out of range, or a wrong layout.
    #[error("workload: {part}: {reason}")]
    Value {
        /// The part of the spec, or the field.
        part: String,
        /// The reason, with the allowed range.
        reason: String,
    },
    /// An app that the catalog does not have.
    #[error("workload: unknown app `{app}`; the catalog has {known}")]
    UnknownApp {
        /// The name given.
        app: String,
        /// The apps of the catalog.
        known: String,
    },
    /// A trace file that cannot be read, or with a wrong field.
    #[error("trace {file}: {field}: {reason}")]
    Trace {
        /// The file.
        file: String,
        /// The field at fault, `.` for the whole file.
        field: String,
        /// The reason.
        reason: String,
    },
}

// === impl WorkloadError ===

impl WorkloadError {
    pub(crate) fn value(part: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Value {
            part: part.into(),
            reason: reason.into(),
        }
    }
}
