//! Markovian arrival processes.

use super::phases::{PHASES_MAX, PhaseHistory, SECOND_US};
use crate::random::{Stream, running_sums};

/// In phase i the next transition comes after an exponential time with the phase's total rate.
#[derive(Clone, Debug)]
pub(super) struct MarkovArrivals {
    phase: usize,
    /// Per phase: mean time to the next transition.
    hold_us: Vec<f64>,
    /// Per phase: running sums of the rates of its transitions, first those without an
    /// arrival to each phase, then those with one.
    rates: Vec<Vec<f64>>,
}

// === impl MarkovArrivals ===

impl MarkovArrivals {
    /// Phases take turns, each with a rate of arrivals and a rate at which it is left.
    pub(super) fn modulated(rates: &[f64], leave: &[f64]) -> Self {
        let phases = rates.len();
        let matrix = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            let row = |i| (0..phases).map(|j| entry(i, j)).collect();
            (0..phases).map(row).collect()
        };
        let d0 = matrix(&|i, j| if j == (i + 1) % phases { leave[i] } else { 0.0 });
        let d1 = matrix(&|i, j| if i == j { rates[i] } else { 0.0 });
        Self::new(&d0, &d1)
    }

    /// The diagonal of `d0` follows from the other entries and is not read.
    pub(super) fn new(d0: &[Vec<f64>], d1: &[Vec<f64>]) -> Self {
        let row = |(i, (row0, row1)): (usize, (&Vec<f64>, &Vec<f64>))| {
            let silent = row0.iter().enumerate();
            let silent = silent.map(|(j, &rate)| if i == j { 0.0 } else { rate });
            running_sums(silent.chain(row1.iter().copied()))
        };
        let rates: Vec<Vec<f64>> = d0.iter().zip(d1).enumerate().map(row).collect();
        let total = |sums: &Vec<f64>| sums.last().copied().unwrap_or(1.0);
        Self {
            phase: 0,
            hold_us: rates.iter().map(|sums| SECOND_US / total(sums)).collect(),
            rates,
        }
    }

    pub(super) fn phases(&self) -> usize {
        self.hold_us.len().min(PHASES_MAX)
    }

    /// Total rate of the transitions from a phase that have an arrival.
    pub(super) fn rate_in(&self, phase: usize) -> Option<f64> {
        let sums = self.rates.get(phase)?;
        Some(sums.last()? - sums.get(self.hold_us.len() - 1)?)
    }

    pub(super) fn next(
        &mut self,
        now_us: f64,
        history: &mut PhaseHistory,
        random: &mut Stream,
    ) -> (f64, usize) {
        let phases = self.hold_us.len();
        let mut at_us = now_us;
        loop {
            let from = self.phase;
            at_us += self.hold_us[from] * random.exponential();
            let transition = random.pick(&self.rates[from]);
            self.phase = transition % phases;
            if self.phase != from {
                history.change(self.phase, at_us);
            }
            if transition >= phases {
                return (at_us, from.min(PHASES_MAX - 1));
            }
        }
    }
}
