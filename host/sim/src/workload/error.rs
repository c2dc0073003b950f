//! Why a workload is none.

use thiserror::Error;

/// Why a workload cannot be run; every message names the part that is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// A word that means nothing.
    #[error("workload: {part}: `{found}` is none of {expected}")]
    Unknown {
        /// The part of the spec.
        part: String,
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// A number or a layout that makes no sense.
    #[error("workload: {part}: {reason}")]
    Value {
        /// The part of the spec, or the field.
        part: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An app that the catalog does not have.
    #[error("workload: there is no app `{app}`; there are {known}")]
    UnknownApp {
        /// The name given.
        app: String,
        /// The apps there are.
        known: String,
    },
    /// A trace that cannot be read or is none.
    #[error("trace {file}: {field}: {reason}")]
    Trace {
        /// The file.
        file: String,
        /// The field at fault, `.` for the whole.
        field: String,
        /// What is wrong with it.
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
