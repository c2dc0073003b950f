//! Arrivals at one worker of the round robin (section 4.4.2).

use crate::law::ArrivalLaw;
use crate::space::StateSpace;

/// The arrivals at one worker of the round robin.
pub(crate) struct WorkerArrivals<'a, L> {
    pub(crate) law: L,
    /// Events of the law per request of the worker: K for Poisson arrivals.
    pub(crate) cycle: usize,
    pub(crate) space: &'a StateSpace,
}

// === impl WorkerArrivals ===

impl<L: ArrivalLaw> WorkerArrivals<'_, L> {
    /// The distribution of a state's phase: of the arrivals in interval A = SLO - T_j, given that
    /// they are in [(n-1)K, nK - 1], modulo K. Built outwards from its largest chance, since that
    /// window can be far in a tail.
    pub(crate) fn phase_chances(&self, queued: usize, slack: usize, chances: &mut [f64]) {
        let waited_us = (self.space.slo_us - self.space.slack_us[slack]) as f64;
        let first = (queued - 1) * self.cycle;
        chances.fill(0.0);
        if waited_us <= 0.0 {
            // The limit of short times: the fewest arrivals.
            chances[0] = 1.0;
            return;
        }
        let mode = self.law.mode(waited_us);
        let mode = mode.clamp(first, first + self.cycle - 1) - first;
        chances[mode] = 1.0;
        for q in (0..mode).rev() {
            chances[q] = chances[q + 1] / self.law.ratio(first + q, waited_us);
        }
        for q in mode + 1..self.cycle {
            chances[q] = chances[q - 1] * self.law.ratio(first + q - 1, waited_us);
        }
        let sum: f64 = chances.iter().sum();
        for chance in chances {
            *chance /= sum;
        }
    }
}
