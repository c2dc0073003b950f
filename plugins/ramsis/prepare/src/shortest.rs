//! The transition law under join-the-shortest-queue, which the paper leaves open (section 3.2.1).
//!
//! A request goes to a worker with the fewest requests, served and waiting; ties are broken evenly.
//! Two approximations, usual for many workers:
//! - the numbers of requests of the other workers are independent of this worker's and of each
//!   other, and distributed as this worker's over time;
//! - while this worker has x requests, the other workers have their distribution at any time.
//!
//! With p_x the share of time with x requests and P_x that with x or more, a request goes to a
//! worker with x requests if no other has fewer, with equal chances among those with x:
//!
//! lambda_x = lambda sum over c of C(K-1, c) p_x^c P_(x+1)^(K-1-c) / (c + 1)
//!          = lambda (P_x^K - P_(x+1)^K) / (K p_x).
//!
//! So sum over x of K p_x lambda_x = lambda. Given p, arrivals at a worker that runs a batch of b
//! are a pure birth process with rates lambda_b, lambda_(b+1), ... With p_t(n) the chance of n
//! births in t, started at b, the first arrives after t and n' have arrived by l with chance S(t,
//! n') = exp(-lambda_b t) p_(l-t)(n'), and P(n', j') = S(t_j', n') - S(t_j'+1, n') with the times
//! of the round-robin law. There is no phase: the law is Markov in the state.
//!
//! p follows from the policy and the rates, and the rates from p. Both are iterated until they
//! agree to 1e-4, and the policy with them: an equilibrium, where each worker's policy is the best
//! given the others'. Expectations are no bounds; `tests/shortest.rs` compares them with a
//! simulation. With many workers the iteration can take a minute, or end with an error.

use crate::cancel::CancelFlag;
use crate::error::PrepareError;
use crate::kernel::{Kernel, KernelBuilder};
use crate::law::{Counts, Poisson};
use crate::problem::{DecisionProcess, ProcessInputs, Transitions};
use crate::solve::{Solution, Solver};
use crate::space::StateSpace;

/// Rates agree if no relative change, times the share of time with it, exceeds this. The law itself
/// is a coarser approximation.
const AGREED: f64 = 1e-4;
const ROUNDS_MAX: usize = 1_000;

/// Rounds after which the policy is fixed: two policies can alternate.
const POLICY_ROUNDS: usize = 24;

/// Bounds of the step towards the rates that follow from the shares; longer after a round that came
/// closer, otherwise shorter.
const PART_MAX: f64 = 0.5;
const PART_MIN: f64 = 0.01;
const LONGER: f64 = 1.1;
const SHORTER: f64 = 0.5;

/// Lower bound of a rate as a share of the mean, so that it has a logarithm.
const LEAST: f64 = 1e-15;

/// The arrival rate at a worker, by its number of requests.
struct ShortestQueue<'a> {
    space: &'a StateSpace,
    rate_per_us: Vec<f64>,
}

/// New requests in a time.
struct Births {
    /// Chance of 0, 1, ..., N, and of more.
    chances: Vec<f64>,
    /// Mean time with each number, in microseconds.
    times_us: Vec<f64>,
}

/// The best policy under the rates that it causes.
///
/// # Errors
/// Rates and policy did not converge, or the caller cancelled.
pub(crate) fn solve(
    parts: &ProcessInputs<'_>,
    load_rps: f64,
    workers: u32,
    stop: CancelFlag<'_>,
) -> Result<(DecisionProcess, Solution), PrepareError> {
    let levels = 2 * parts.space.queue_max + 2;
    let mean = load_rps / 1e6 / f64::from(workers);
    let mut queue = ShortestQueue {
        space: parts.space,
        rate_per_us: vec![mean; levels],
    };
    let mut policy: Option<Vec<usize>> = None;
    let (mut part, mut last_change) = (PART_MAX, f64::INFINITY);
    for round in 0..ROUNDS_MAX {
        let problem = parts.build(&queue, stop)?;
        let mut solver = Solver::new(&problem, stop);
        let solution = match &policy {
            None => solver.solve(load_rps)?,
            Some(policy) if round < POLICY_ROUNDS => {
                solver.improve_from(policy.clone(), load_rps)?
            }
            Some(policy) => solver.evaluate(policy.clone(), load_rps)?,
        };
        let levels = queue.levels(parts, &problem, &solution);
        let change = queue.follow(&levels, mean, workers, part);
        // With many workers the rates depend steeply on the shares: shorten steps that overshoot.
        part = match change < last_change {
            true => (part * LONGER).min(PART_MAX),
            false => (part * SHORTER).max(PART_MIN),
        };
        last_change = change;
        if change < AGREED && policy.as_ref() == Some(&solution.policy) {
            return Ok((problem, solution));
        }
        policy = Some(solution.policy);
    }
    Err(PrepareError::Unsettled {
        load_rps,
        quantity: "the rates of shortest-queue balancing",
        steps: ROUNDS_MAX,
    })
}

// === impl ShortestQueue ===

impl ShortestQueue<'_> {
    fn births(&self, start: usize, time_us: f64) -> Births {
        let space = self.space;
        let last = space.queue_max + 1;
        let rates = &self.rate_per_us[start..start + last];
        let most = rates.iter().copied().fold(0.0, f64::max);
        let mut births = Births {
            chances: vec![0.0; last + 1],
            times_us: vec![0.0; last + 1],
        };
        if most <= 0.0 || time_us <= 0.0 {
            births.chances[0] = 1.0;
            births.times_us[0] = time_us.max(0.0);
            return births;
        }
        // Uniformisation: jumps at the highest rate, some to the same state.
        let jumps = Counts::new(&Poisson { rate_per_us: most }, time_us);
        let mut now = vec![0.0; last + 1];
        now[0] = 1.0;
        let mut more = 1.0;
        for jump in 0..=jumps.last() {
            let chance = jumps.chance(jump);
            more -= chance;
            for (n, &at) in now.iter().enumerate() {
                births.chances[n] += chance * at;
                births.times_us[n] += f64::max(more, 0.0) / most * at;
            }
            for n in (0..last).rev() {
                let moved = now[n] * rates[n] / most;
                now[n] -= moved;
                now[n + 1] += moved;
            }
        }
        // Corrects the rounding of thousands of steps.
        let total: f64 = births.chances.iter().sum();
        births
            .chances
            .iter_mut()
            .for_each(|chance| *chance /= total);
        births
    }

    /// Shares of time with 0, 1, ... requests, served and waiting.
    fn levels(
        &self,
        parts: &ProcessInputs<'_>,
        problem: &DecisionProcess,
        solution: &Solution,
    ) -> Vec<f64> {
        let mut by_action = vec![0.0; 1 << 16];
        for (&chance, &c) in solution.stationary.iter().zip(&solution.policy) {
            let action = problem.choice(c).action;
            by_action[usize::from(action.variant) << 8 | usize::from(action.batch)] += chance;
        }
        let mut levels = vec![0.0; self.rate_per_us.len()];
        for (action, &chance) in by_action.iter().enumerate() {
            if chance == 0.0 {
                continue;
            }
            let (variant, batch) = (action >> 8, action & 0xff);
            let latency_us = parts.models[variant].latency_of(batch).unwrap_or_default();
            let births = self.births(batch, latency_us as f64);
            for (n, time_us) in births.times_us.iter().enumerate() {
                levels[batch + n] += chance * time_us;
            }
            levels[0] += chance * births.chances[0] / self.rate_per_us[0];
        }
        let total: f64 = levels.iter().sum();
        levels.iter_mut().for_each(|share| *share /= total);
        levels
    }

    /// Moves the logarithms of the rates part of the way to those that follow from the shares.
    /// Returns the largest difference before.
    fn follow(&mut self, levels: &[f64], mean: f64, workers: u32, part: f64) -> f64 {
        let power = |base: f64| base.powi(workers as i32);
        let mut change: f64 = 0.0;
        let mut beyond = 0.0;
        for (rate, &share) in self.rate_per_us.iter_mut().zip(levels).rev() {
            let with = beyond + share;
            let wanted = if share > 1e-9 * with {
                mean * (power(with) - power(beyond)) / share
            } else {
                // The limit for a vanishing share of time.
                mean * f64::from(workers) * with.powi(workers as i32 - 1)
            };
            let wanted = wanted.max(LEAST * mean);
            change = change.max((wanted / *rate).ln().abs() * share);
            // At most the total rate.
            *rate *= (wanted / *rate).powf(part);
            *rate = rate.min(mean * f64::from(workers));
            beyond = with;
        }
        change
    }
}

impl Transitions for ShortestQueue<'_> {
    fn phases(&self) -> usize {
        1
    }

    fn phase_chances(&self, _queued: usize, _slack: usize, chances: &mut [f64]) {
        chances.fill(1.0);
    }

    fn whole(&self, batch: usize, latency_us: u64) -> Result<Kernel, PrepareError> {
        let space = self.space;
        let all = self.births(batch, latency_us as f64);
        let rate = self.rate_per_us[batch];
        // S, by slack and number.
        let later: Vec<Vec<f64>> = space
            .slack_us
            .iter()
            .enumerate()
            .map(
                |(j, &slack)| match (latency_us + slack).checked_sub(space.slo_us) {
                    Some(t) if j > 0 && t > 0 => {
                        let none = (-rate * t as f64).exp();
                        let left = self.births(batch, (latency_us - t) as f64);
                        left.chances.iter().map(|chance| none * chance).collect()
                    }
                    // Slack 0 includes requests that are late already.
                    _ => all.chances.clone(),
                },
            )
            .collect();
        let mut rows = KernelBuilder::default();
        rows.add(space.emptied(), &all.chances[..1]);
        for queued in 1..=space.queue_max {
            let chances: Vec<f64> = later
                .windows(2)
                .map(|pair| pair[0][queued] - pair[1][queued])
                .collect();
            rows.add(space.state(queued, 0), &chances);
        }
        rows.add(space.full(), &all.chances[space.queue_max + 1..]);
        rows.end_phase()?;
        Ok(rows.finish())
    }

    fn part(
        &self,
        _batch: usize,
        _latency_us: u64,
        states: &[(usize, usize)],
    ) -> Result<Vec<Kernel>, PrepareError> {
        match states {
            [] => Ok(Vec::new()),
            _ => Err(PrepareError::spec(
                "batching",
                "must be maximal for shortest-queue balancing",
            )),
        }
    }
}
