//! The percentile that policies plan with.

use switchyard_core::time::Micros;

use crate::schema::LatencyCell;

/// Which of the measured percentiles a policy plans with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Percentile {
    /// The median.
    P50,
    /// The papers plan with it.
    #[default]
    P95,
    /// The tail.
    P99,
}

// === impl Percentile ===

impl Percentile {
    /// As a share, 0 to 1.
    pub fn share(self) -> f64 {
        match self {
            Self::P50 => 0.50,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
        }
    }

    /// This percentile of a cell.
    pub(crate) fn of(self, cell: &LatencyCell) -> Micros {
        Micros(match self {
            Self::P50 => cell.p50_us,
            Self::P95 => cell.p95_us,
            Self::P99 => cell.p99_us,
        })
    }
}
