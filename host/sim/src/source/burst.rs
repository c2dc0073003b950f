//! Poisson arrivals, and bursts of simultaneous arrivals at fixed intervals.

use crate::random::Stream;

#[derive(Clone, Debug)]
pub(super) struct BurstArrivals {
    /// Mean gap between single arrivals; none if there are only bursts.
    gap_us: Option<f64>,
    next_single_us: Option<f64>,
    size: u32,
    every_us: f64,
    next_burst_us: f64,
    /// Arrivals left of the next burst.
    left: u32,
}

// === impl BurstArrivals ===

impl BurstArrivals {
    pub(super) fn new(gap_us: Option<f64>, size: u32, every_us: f64) -> Self {
        Self {
            gap_us,
            next_single_us: None,
            size,
            every_us,
            next_burst_us: every_us,
            left: size,
        }
    }

    pub(super) fn next(&mut self, random: &mut Stream) -> f64 {
        if let (None, Some(gap_us)) = (self.next_single_us, self.gap_us) {
            self.next_single_us = Some(gap_us * random.exponential());
        }
        if let (Some(single_us), Some(gap_us)) = (self.next_single_us, self.gap_us)
            && single_us < self.next_burst_us
        {
            self.next_single_us = Some(single_us + gap_us * random.exponential());
            return single_us;
        }
        let at_us = self.next_burst_us;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.size;
            self.next_burst_us += self.every_us;
        }
        at_us
    }
}
