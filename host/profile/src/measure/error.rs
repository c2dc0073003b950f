//! Why a measurement is not complete.

use thiserror::Error;

use super::bench::BenchError;

/// Why a measurement ended before it was complete.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// A kind is not available, or a variant cannot be loaded or run on it.
    #[error("measuring {kind}: {source}")]
    Bench {
        /// The worker kind.
        kind: String,
        /// The reason; names the variant.
        source: BenchError,
    },
    /// The watch cancelled it.
    #[error("the measurement was interrupted")]
    Cancelled,
}

// === impl MeasureError ===

impl MeasureError {
    pub(super) fn bench(kind: &str, source: BenchError) -> Self {
        Self::Bench {
            kind: kind.to_owned(),
            source,
        }
    }
}
