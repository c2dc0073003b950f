//! One cell of a profile while it is measured.

use std::time::Duration;

use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;

use super::bench::StageRange;
use super::options::MeasureOptions;
use crate::measurement::MeteredEnergy;
use crate::samples::is_settled;

/// From this number of samples on a cell is done when its time is up.
const SAMPLES_FEW: usize = 10;

/// A median that is known to within this share of itself has settled.
const SETTLED: f64 = 0.02;

/// Samples of one stage range for one batch size.
pub(super) struct MeasuredCell {
    pub(super) variant: VariantId,
    pub(super) range: StageRange,
    pub(super) batch: u32,
    /// The sum over the range's single stages, instead of the range in one go.
    pub(super) sliced: bool,
    /// The warm-up, in which buffers grow and caches fill; 0 if there was none.
    pub(super) cold_us: u64,
    pub(super) samples_us: Vec<u64>,
    /// Time that its samples took.
    pub(super) spent: Duration,
    pub(super) metered: MeteredEnergy,
}

// === impl MeasuredCell ===

impl MeasuredCell {
    pub(super) fn new(variant: VariantId, range: StageRange, batch: u32, sliced: bool) -> Self {
        Self {
            variant,
            range,
            batch,
            sliced,
            cold_us: 0,
            samples_us: Vec::new(),
            spent: Duration::ZERO,
            metered: MeteredEnergy::default(),
        }
    }

    /// Whether it has a warm-up or a sample.
    pub(super) fn is_measured(&self) -> bool {
        self.cold_us > 0 || !self.samples_us.is_empty()
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, took: Micros, options: &MeasureOptions) {
        self.spent += Duration::from(took);
        if self.samples_us.len() < options.samples_max {
            self.samples_us.push(took.0);
        }
    }

    /// Whether it needs no more samples.
    pub(super) fn is_done(&self, options: &MeasureOptions) -> bool {
        let samples = self.samples_us.len();
        samples >= options.samples_max
            || samples >= SAMPLES_FEW && self.spent >= options.cell_max
            || samples >= options.samples_min && is_settled(&self.samples_us, SETTLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_done_by_samples_by_time_or_when_its_median_has_settled() {
        let options = MeasureOptions::thorough(Duration::ZERO);
        let is_done = |samples_us: Vec<u64>| {
            let mut cell = MeasuredCell::new(VariantId(0), StageRange::single(0), 1, false);
            for us in samples_us {
                cell.add(Micros(us), &options);
            }
            cell.is_done(&options)
        };
        assert!(!is_done(vec![100; 99]));
        assert!(is_done(vec![100; 100]), "settled");
        let noisy = |count: u64| (0..count).map(|i| 100 + (i * 37) % 90).collect();
        assert!(!is_done(noisy(399)));
        assert!(is_done(noisy(400)), "as many samples as may be taken");
        assert!(!is_done(vec![2_000_000; 9]), "9 samples are too few");
        assert!(is_done(vec![2_000_000; 10]), "its time is up");
    }
}
