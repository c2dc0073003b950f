//! The transition law under round robin (section 4.4.2).
//!
//! The worker gets every K-th arrival. With q arrivals since its last one, its next request is the
//! r-th arrival from now, r = K - q. A batch of latency l ends in state (n', j') if n' of the
//! worker's requests have arrived, the first at a time s with SLO - (l - s) between T_j' and
//! T_j'+1, that is, in (t_j', t_j'+1] with t_j = l + T_j - SLO.
//!
//! The paper sums over the arrivals in its intervals B = [0, t_j'], C = (t_j', t_j'+1] and
//! D = (t_j'+1, l]. The same probability is a difference of two sums over one count each:
//!
//! H(t, n') = P(N(t) >= r, N(l) <= r + n'K - 1)
//!          = sum over k >= r of PF(k, t) F(r + n'K - 1 - k, l - t)
//!
//! is the chance that the worker's next request has arrived by t and at most n' have by l. Then
//!
//! P(n', j') = [H(t_j'+1, n') - H(t_j'+1, n'-1)] - [H(t_j', n') - H(t_j', n'-1)].
//!
//! The time left, l - t_j = SLO - T_j, does not depend on the action: F is computed once per slack.
//! The past matters only through q.

use crate::arrivals::WorkerArrivals;
use crate::error::PrepareError;
use crate::kernel::{Kernel, KernelBuilder, dot};
use crate::law::{ArrivalLaw, Counts};
use crate::partial::PartialBatch;
use crate::problem::Transitions;
use crate::space::StateSpace;

/// The round-robin law of a table.
pub(crate) struct RoundRobin<'a, L> {
    arrivals: WorkerArrivals<'a, L>,
    /// Per slack, events between t_j and the end of the batch.
    left: Vec<CountsAfter>,
}

/// Events in the time left after t_j.
struct CountsAfter {
    first: usize,
    last: usize,
    upto_downwards: Vec<f64>,
}

/// Events up to t_j.
enum CountsBefore {
    /// t_j is before the start of the batch.
    None,
    /// t_j is the end of the batch.
    All,
    Some(Counts),
}

// === impl RoundRobin ===

impl<'a, L: ArrivalLaw> RoundRobin<'a, L> {
    pub(crate) fn new(law: L, cycle: usize, space: &'a StateSpace) -> Self {
        let left = |&slack: &u64| {
            let counts = Counts::new(&law, (space.slo_us - slack) as f64);
            CountsAfter {
                first: counts.first,
                last: counts.last(),
                upto_downwards: counts.upto_downwards(),
            }
        };
        let left = space.slack_us.iter().map(left).collect();
        Self {
            arrivals: WorkerArrivals { law, cycle, space },
            left,
        }
    }

    /// The next state after a batch of the whole queue, by q.
    fn kernel(&self, latency_us: u64) -> Result<Kernel, PrepareError> {
        let WorkerArrivals { law, cycle, space } = &self.arrivals;
        let cycle = *cycle;
        let all = Counts::new(law, latency_us as f64);
        let before: Vec<CountsBefore> = space
            .slack_us
            .iter()
            .enumerate()
            .map(
                |(j, &slack)| match (latency_us + slack).checked_sub(space.slo_us) {
                    // Slack 0 includes requests that are late already.
                    None | Some(0) => CountsBefore::None,
                    Some(_) if j == 0 => CountsBefore::None,
                    Some(t) if t == latency_us => CountsBefore::All,
                    Some(t) => CountsBefore::Some(Counts::new(law, t as f64)),
                },
            )
            .collect();
        let slacks = space.slacks();
        let mut rows = KernelBuilder::default();
        let mut fewer = vec![0.0; slacks];
        let mut upto = vec![0.0; slacks];
        let mut chances = vec![0.0; slacks];
        for q in 0..cycle {
            let next = cycle - q;
            rows.add(space.emptied(), &[all.upto(next as isize - 1)]);
            fewer.fill(0.0);
            for queued in 1..=space.queue_max {
                let most = next + queued * cycle - 1;
                if most < all.first {
                    continue;
                }
                for (j, before) in before.iter().enumerate() {
                    upto[j] = match before {
                        CountsBefore::None => 0.0,
                        CountsBefore::All => all.upto(most as isize) - all.upto(next as isize - 1),
                        CountsBefore::Some(counts) => self.left[j].after(counts, next, most, &all),
                    };
                }
                let came = |j: usize| upto[j] - fewer[j];
                for (j, chance) in chances[..slacks - 1].iter_mut().enumerate() {
                    *chance = came(j + 1) - came(j);
                }
                rows.add(space.state(queued, 0), &chances);
                std::mem::swap(&mut fewer, &mut upto);
                if most >= all.last() {
                    break;
                }
            }
            let most = next + space.queue_max * cycle - 1;
            rows.add(space.full(), &[all.above(most)]);
            rows.end_phase()?;
        }
        Ok(rows.finish())
    }
}

impl<L: ArrivalLaw> Transitions for RoundRobin<'_, L> {
    fn phases(&self) -> usize {
        self.arrivals.cycle
    }

    fn phase_chances(&self, queued: usize, slack: usize, chances: &mut [f64]) {
        self.arrivals.phase_chances(queued, slack, chances);
    }

    fn whole(&self, _batch: usize, latency_us: u64) -> Result<Kernel, PrepareError> {
        self.kernel(latency_us)
    }

    fn part(
        &self,
        batch: usize,
        latency_us: u64,
        states: &[(usize, usize)],
    ) -> Result<Vec<Kernel>, PrepareError> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        let part = PartialBatch::new(&self.arrivals, batch, latency_us);
        let kernel = |&(queued, slack): &(usize, usize)| part.kernel(queued, slack);
        states.iter().map(kernel).collect()
    }
}

// === impl CountsAfter ===

impl CountsAfter {
    /// H: at least `next` events before t_j, and at most `most` in all.
    fn after(&self, before: &Counts, next: usize, most: usize, all: &Counts) -> f64 {
        if before.last() < next {
            return 0.0;
        }
        if before.first >= next {
            return all.upto(most as isize);
        }
        let at = |count: usize| count - before.first;
        // Up to this count the total is certainly at most `most`.
        let certain = most as isize - self.last as isize;
        let from = next.max(before.first);
        let mut sum = 0.0;
        let mut begin = from;
        if certain >= from as isize {
            let certain = (certain as usize).min(before.last());
            sum += before.upto(certain as isize) - before.upto(from as isize - 1);
            begin = certain + 1;
        }
        let Some(end) = most.checked_sub(self.first) else {
            return sum;
        };
        let end = end.min(before.last());
        if begin <= end {
            let left = self.last + begin - most;
            let chances = &before.pmf[at(begin)..=at(end)];
            sum += dot(chances, &self.upto_downwards[left..left + chances.len()]);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
