//! The transition law under round robin (section 4.4.2).
//!
//! The worker gets every K-th arrival. Let q be the arrivals since its last one, so that its next
//! request is the r-th arrival from now, r = K - q. A batch that takes l ends in state (n', j')
//! when n' of the worker's requests have come and the first of them came at a time s with
//! SLO - (l - s) between T_j' and T_j'+1, that is, in (t_j', t_j'+1] with t_j = l + T_j - SLO.
//!
//! The paper sums over the arrivals in its intervals B = [0, t_j'], C = (t_j', t_j'+1] and
//! D = (t_j'+1, l]. The same probability is a difference of two sums over one count each:
//!
//! H(t, n') = P(N(t) >= r, N(l) <= r + n'K - 1) = sum over k >= r of PF(k, t) F(r + n'K - 1 - k, l - t)
//!
//! is the chance that the worker's next request has come by t and no more than n' have by l. Then
//!
//! P(n', j') = [H(t_j'+1, n') - H(t_j'+1, n'-1)] - [H(t_j', n') - H(t_j', n'-1)].
//!
//! The time left, l - t_j = SLO - T_j, does not depend on the action: F is made once per slack
//! for the whole table. All of it depends on what came before only through q.

use crate::error::PrepareError;
use crate::kernel::{Kernel, Rows, dot};
use crate::law::{ArrivalLaw, Counts};
use crate::part::Part;
use crate::problem::Transitions;
use crate::space::Space;

/// What the laws of all batches of a table share.
pub(crate) struct RoundRobin<'a, L> {
    law: L,
    /// Events of the law per request of the worker: K for Poisson arrivals.
    cycle: usize,
    space: &'a Space,
    /// Events between the time of a slack and the end of the batch, by slack.
    left: Vec<Left>,
}

/// Events in the time that is left.
struct Left {
    first: usize,
    last: usize,
    upto_downwards: Vec<f64>,
}

/// Events up to the time of a slack.
enum Before {
    /// The time is before the batch began.
    None,
    /// The time is the batch's end.
    All,
    Some(Counts),
}

// === impl RoundRobin ===

impl<'a, L: ArrivalLaw> RoundRobin<'a, L> {
    pub(crate) fn new(law: L, cycle: usize, space: &'a Space) -> Self {
        let left = |&slack: &u64| {
            let counts = Counts::new(&law, (space.slo_us - slack) as f64);
            Left {
                first: counts.first,
                last: counts.last(),
                upto_downwards: counts.upto_downwards(),
            }
        };
        let left = space.slack_us.iter().map(left).collect();
        Self {
            law,
            cycle,
            space,
            left,
        }
    }

    pub(crate) fn law(&self) -> &L {
        &self.law
    }

    pub(crate) fn cycle(&self) -> usize {
        self.cycle
    }

    pub(crate) fn space(&self) -> &Space {
        self.space
    }

    /// The next state after a batch of the whole queue, by arrivals since the worker's last one.
    fn kernel(&self, latency_us: u64) -> Result<Kernel, PrepareError> {
        let space = self.space;
        let all = Counts::new(&self.law, latency_us as f64);
        let before: Vec<Before> = space
            .slack_us
            .iter()
            .enumerate()
            .map(
                |(j, &slack)| match (latency_us + slack).checked_sub(space.slo_us) {
                    // Slack 0 also stands for what is late already.
                    None | Some(0) => Before::None,
                    Some(_) if j == 0 => Before::None,
                    Some(t) if t == latency_us => Before::All,
                    Some(t) => Before::Some(Counts::new(&self.law, t as f64)),
                },
            )
            .collect();
        let slacks = space.slacks();
        let mut rows = Rows::default();
        let mut fewer = vec![0.0; slacks];
        let mut upto = vec![0.0; slacks];
        let mut chances = vec![0.0; slacks];
        for q in 0..self.cycle {
            let next = self.cycle - q;
            rows.run(space.emptied(), &[all.upto(next as isize - 1)]);
            fewer.fill(0.0);
            for queued in 1..=space.queue_max {
                let most = next + queued * self.cycle - 1;
                if most < all.first {
                    continue;
                }
                for (j, before) in before.iter().enumerate() {
                    upto[j] = match before {
                        Before::None => 0.0,
                        Before::All => all.upto(most as isize) - all.upto(next as isize - 1),
                        Before::Some(counts) => self.left[j].after(counts, next, most, &all),
                    };
                }
                let came = |j: usize| upto[j] - fewer[j];
                for (j, chance) in chances[..slacks - 1].iter_mut().enumerate() {
                    *chance = came(j + 1) - came(j);
                }
                rows.run(space.state(queued, 0), &chances);
                std::mem::swap(&mut fewer, &mut upto);
                if most >= all.last() {
                    break;
                }
            }
            let most = next + space.queue_max * self.cycle - 1;
            rows.run(space.full(), &[all.above(most)]);
            rows.end_phase()?;
        }
        Ok(rows.finish())
    }
}

impl<L: ArrivalLaw> Transitions for RoundRobin<'_, L> {
    fn phases(&self) -> usize {
        self.cycle
    }

    /// The arrivals since the earliest request came, all in
    /// [(n-1)K, nK - 1], came in SLO - T_j (interval A). Built from its largest chance outwards,
    /// for the window can be far in a tail.
    fn phase_chances(&self, queued: usize, slack: usize, chances: &mut [f64]) {
        let waited_us = (self.space.slo_us - self.space.slack_us[slack]) as f64;
        let first = (queued - 1) * self.cycle;
        chances.fill(0.0);
        if waited_us <= 0.0 {
            // The limit of short times: as few arrivals as can be.
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

    fn whole(&self, _batch: usize, latency_us: u64) -> Result<Kernel, PrepareError> {
        self.kernel(latency_us)
    }

    fn part(
        &self,
        batch: usize,
        latency_us: u64,
        places: &[(usize, usize)],
    ) -> Result<Vec<Kernel>, PrepareError> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let part = Part::new(self, batch, latency_us);
        let kernel = |&(queued, slack): &(usize, usize)| part.kernel(queued, slack);
        places.iter().map(kernel).collect()
    }
}

// === impl Left ===

impl Left {
    /// H: at least `next` events before, and no more than `most` in all.
    fn after(&self, before: &Counts, next: usize, most: usize, all: &Counts) -> f64 {
        if before.last() < next {
            return 0.0;
        }
        if before.first >= next {
            return all.upto(most as isize);
        }
        let at = |count: usize| count - before.first;
        // Up to here it is certain that what is left does not go beyond `most`.
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
