//! How long and how often a measurement samples.

use std::time::Duration;

/// How long and how often to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureOptions {
    /// Time for everything, loads included. One sample of every cell is taken even if that takes
    /// longer.
    pub budget: Duration,
    /// Batch sizes. Those above a variant's largest are left out; its largest is always added.
    pub batches: Vec<u32>,
    /// Samples from which on a cell is done as soon as its median has settled.
    pub samples_min: usize,
    /// Most samples per cell.
    pub samples_max: usize,
    /// Most time for one cell, once it has 10 samples.
    pub cell_max: Duration,
}

// === impl MeasureOptions ===

impl MeasureOptions {
    /// Six seconds in all, batches 1 to 32, up to 40 samples: enough that the 95th percentile
    /// survives two interruptions by other programs.
    pub fn quick() -> Self {
        Self {
            budget: Duration::from_secs(6),
            batches: vec![1, 2, 4, 8, 16, 32],
            samples_min: 40,
            samples_max: 40,
            cell_max: Duration::from_secs(1),
        }
    }

    /// Up to 400 samples, so that the 99th percentile is not simply the largest.
    pub fn thorough(budget: Duration) -> Self {
        Self {
            budget,
            samples_min: 100,
            samples_max: 400,
            cell_max: Duration::from_secs(8),
            ..Self::quick()
        }
    }
}
