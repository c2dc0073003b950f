//! A fixed number of arrivals, uniform in each window of fixed length.

use crate::random::Stream;

#[derive(Clone, Debug)]
pub(super) struct WindowedArrivals {
    count: usize,
    length_us: f64,
    begin_us: f64,
    /// Of the present window, last to first.
    left: Vec<f64>,
}

// === impl WindowedArrivals ===

impl WindowedArrivals {
    pub(super) fn new(count: u32, length_us: f64) -> Self {
        Self {
            count: count as usize,
            length_us,
            begin_us: 0.0,
            left: Vec::new(),
        }
    }

    pub(super) fn next(&mut self, random: &mut Stream) -> f64 {
        if self.left.is_empty() {
            let begin_us = self.begin_us;
            let times = (0..self.count).map(|_| begin_us + self.length_us * random.uniform());
            self.left.extend(times);
            self.left.sort_by(|a, b| b.total_cmp(a));
            self.begin_us += self.length_us;
        }
        // Validation requires at least one arrival per window.
        self.left.pop().unwrap_or(self.begin_us)
    }
}
