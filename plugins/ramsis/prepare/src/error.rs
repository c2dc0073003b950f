//! Why no table can be made.

use std::io;
use std::path::PathBuf;

use ramsis_tables::TablesError;
use thiserror::Error;

/// Why no table can be made.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// A value of the specification cannot be.
    #[error("`{field}`: {reason}")]
    Spec {
        /// Which one.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A batch of a variant was not measured, and too few others to fill it in from.
    #[error("variant `{variant}`: batch {batch} was not measured and cannot be filled in")]
    Hole {
        /// Which variant.
        variant: String,
        /// The smallest such batch.
        batch: u32,
    },
    /// A row of the transition law does not sum to 1: a fault of this library.
    #[error("the chances of phase {phase} sum to {sum}, not to 1")]
    RowSum {
        /// Arrivals since the worker's last one.
        phase: usize,
        /// What they sum to.
        sum: f64,
    },
    /// The decision process was not solved within the allowed steps.
    #[error("load {load_rps}/s: {what} did not settle within {steps} steps")]
    Unsettled {
        /// Which load.
        load_rps: f64,
        /// What was computed.
        what: &'static str,
        /// Steps that were taken.
        steps: usize,
    },
    /// It was asked to stop.
    #[error("stopped before it was done")]
    Cancelled,
    /// A file of the set cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// What was made is no set of tables.
    #[error(transparent)]
    Tables(#[from] TablesError),
}

// === impl PrepareError ===

impl PrepareError {
    pub(crate) fn spec(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Spec {
            field: field.into(),
            reason: reason.into(),
        }
    }
}
