//! The round-robin transition law of a batch that leaves requests waiting (variable batching,
//! section 4.3.2; the paper does not give its law).
//!
//! In state (n, T_j) the earliest request arrived T_A := SLO - T_j ago and k arrivals followed, k
//! in [(n-1)K, nK - 1]. A batch of b < n takes the b earliest. The earliest request left is the
//! bK-th arrival of interval A; it arrived by u with chance P(N(u) >= bK | N(T_A) = k), and its
//! slack after the batch of latency l is T_j + u - l. Meanwhile a' requests join the n - b, with
//! chance P(a'K - q <= N(l) <= (a'+1)K - q - 1). Both depend on k only through q = k mod K, so
//!
//! P(n - b + a', j') = sum over q of P(q) P(u in (u_j', u_j'+1] | q) P(a' | q),
//! u_j = T_j' + l - T_j.

use crate::arrivals::WorkerArrivals;
use crate::error::PrepareError;
use crate::kernel::{Kernel, KernelBuilder, dot};
use crate::law::{ArrivalLaw, Counts};

/// A batch that leaves requests waiting.
pub(crate) struct PartialBatch<'a, L> {
    arrivals: &'a WorkerArrivals<'a, L>,
    batch: usize,
    latency_us: u64,
    /// Per number of new requests, the chance by phase.
    joined: Vec<Vec<f64>>,
    all: Counts,
}

// === impl PartialBatch ===

impl<'a, L: ArrivalLaw> PartialBatch<'a, L> {
    pub(crate) fn new(arrivals: &'a WorkerArrivals<'a, L>, batch: usize, latency_us: u64) -> Self {
        let all = Counts::new(&arrivals.law, latency_us as f64);
        let cycle = arrivals.cycle as isize;
        let joined = |new: isize| {
            let by = |q: isize| {
                let (least, most) = (new * cycle - q, (new + 1) * cycle - q - 1);
                all.upto(most) - all.upto(least - 1)
            };
            (0..cycle).map(by).collect()
        };
        let joined = (0..=arrivals.space.queue_max as isize)
            .map(joined)
            .collect();
        Self {
            arrivals,
            batch,
            latency_us,
            joined,
            all,
        }
    }

    /// The next state from (queued, slack).
    ///
    /// # Errors
    /// The row does not sum to 1.
    pub(crate) fn kernel(&self, queued: usize, slack: usize) -> Result<Kernel, PrepareError> {
        let (space, cycle) = (self.arrivals.space, self.arrivals.cycle);
        let slack_us = space.slack_us[slack];
        let waited_us = space.slo_us - slack_us;
        let mut phases = vec![0.0; cycle];
        self.arrivals.phase_chances(queued, slack, &mut phases);
        let waiting = queued - self.batch;
        let news = space.queue_max - waiting;
        let slacks = space.slacks();
        let mut next = vec![0.0; (news + 1) * slacks];
        let mut full = 0.0;
        let mut before = vec![0.0; cycle];
        let mut by = vec![0.0; cycle];
        let mut joint = vec![0.0; cycle];
        for next_slack in 0..slacks {
            let until = match space.slack_us.get(next_slack + 1) {
                Some(&us) => us as i64 + self.latency_us as i64 - slack_us as i64,
                None => i64::MAX,
            };
            if until <= 0 {
                continue;
            }
            if until as u64 >= waited_us {
                by.fill(1.0);
            } else {
                self.arrivals.law.reached(
                    self.batch * cycle,
                    (queued - 1) * cycle,
                    until as f64,
                    waited_us as f64,
                    &mut by,
                );
            }
            for q in 0..cycle {
                joint[q] = phases[q] * (by[q] - before[q]);
            }
            for (new, joined) in self.joined[..=news].iter().enumerate() {
                next[new * slacks + next_slack] = dot(&joint, joined);
            }
            let beyond = ((news + 1) * cycle) as isize;
            full += joint
                .iter()
                .enumerate()
                .map(|(q, chance)| chance * self.all.above((beyond - q as isize - 1) as usize))
                .sum::<f64>();
            std::mem::swap(&mut before, &mut by);
            if until as u64 >= waited_us {
                break;
            }
        }
        let mut rows = KernelBuilder::default();
        for (new, chances) in next.chunks_exact(slacks).enumerate() {
            rows.add(space.state(waiting + new, 0), chances);
        }
        rows.add(space.full(), &[full]);
        rows.end_phase()?;
        Ok(rows.finish())
    }
}
