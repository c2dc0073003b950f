//! Piecewise constant rates, with Poisson arrivals in each segment.

use super::phases::{PHASES_MAX, PhaseHistory, SECOND_US};
use crate::random::Stream;

/// A rate for a time.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Arrivals per microsecond.
    rate: f64,
    length_us: f64,
}

#[derive(Clone, Debug)]
pub(super) struct PiecewiseArrivals {
    segments: Vec<Segment>,
    is_cyclic: bool,
    at: usize,
    segment_end_us: f64,
}

// === impl PiecewiseArrivals ===

impl PiecewiseArrivals {
    /// From rates per second and lengths in microseconds.
    pub(super) fn new(segments: impl Iterator<Item = (f64, f64)>, is_cyclic: bool) -> Self {
        let segments: Vec<Segment> = segments
            .map(|(per_second, length_us)| Segment {
                rate: per_second / SECOND_US,
                length_us,
            })
            .collect();
        Self {
            segment_end_us: segments.first().map_or(0.0, |segment| segment.length_us),
            segments,
            is_cyclic,
            at: 0,
        }
    }

    pub(super) fn phases(&self) -> usize {
        self.segments.len().min(PHASES_MAX)
    }

    /// Arrivals per second in a phase; none if several segments share a phase.
    pub(super) fn rate_in(&self, phase: usize) -> Option<f64> {
        if self.segments.len() > PHASES_MAX {
            return None;
        }
        Some(self.segments.get(phase)?.rate * SECOND_US)
    }

    /// By inversion: the expected number of arrivals until the next one is exponential.
    pub(super) fn next(
        &mut self,
        now_us: f64,
        history: &mut PhaseHistory,
        random: &mut Stream,
    ) -> Option<(f64, usize)> {
        let mut left = random.exponential();
        let mut from_us = now_us;
        loop {
            let rate = self.segments.get(self.at)?.rate;
            let passes = rate * (self.segment_end_us - from_us);
            if left < passes {
                return Some((from_us + left / rate, self.phase()));
            }
            left -= passes;
            from_us = self.segment_end_us;
            self.at += 1;
            if self.is_cyclic && self.at == self.segments.len() {
                self.at = 0;
            }
            self.segment_end_us += self.segments.get(self.at)?.length_us;
            history.change(self.phase(), from_us);
        }
    }

    fn phase(&self) -> usize {
        match self.segments.len() {
            few if few <= PHASES_MAX => self.at,
            many => self.at * PHASES_MAX / many,
        }
    }
}
