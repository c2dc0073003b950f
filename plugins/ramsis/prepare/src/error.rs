//! Errors of the generator.

use std::io;
use std::path::PathBuf;

use ramsis_tables::TablesError;
use thiserror::Error;

/// An error of the generator.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// A value of the specification is out of range.
    #[error("`{field}`: {reason}")]
    Spec {
        /// The field.
        field: String,
        /// The allowed range.
        reason: String,
    },
    /// A batch of a variant was not measured and cannot be interpolated.
    #[error(
        "variant `{variant}`: batch {batch} was not measured and cannot be interpolated; measure it \
         with `switchyard profile`"
    )]
    Hole {
        /// The variant.
        variant: String,
        /// The smallest such batch.
        batch: u32,
    },
    /// A row of the transition law does not sum to 1: a bug of this library.
    #[error("transition row of phase {phase}: sums to {sum}, must be 1; this is a bug")]
    RowSum {
        /// Arrivals since the worker's last one.
        phase: usize,
        /// The sum.
        sum: f64,
    },
    /// An iteration did not converge.
    #[error("load {load_rps}/s: {quantity} did not converge within {steps} steps")]
    Unsettled {
        /// The load in requests per second.
        load_rps: f64,
        /// The iterated quantity.
        quantity: &'static str,
        /// Number of steps.
        steps: usize,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A file of the set cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The tables do not form a set.
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
