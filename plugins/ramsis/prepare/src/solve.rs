//! Policy iteration for a ratio of rewards to weights.
//!
//! With rewards r, weights w and the stationary distribution mu of a policy, its gain is g = sum mu
//! r / sum mu w, and its relative values solve h = r - g w + P h. The policy that is greedy for r -
//! g w + P h has at least this gain; if none is better, g is the largest (Howard's iteration for
//! semi-Markov processes, equal to Dinkelbach's for the ratio). With w = 1 the gain is the average
//! reward per decision, with w = served requests the reward per request.
//!
//! Values and distribution converge to 1e-12. Far beyond capacity the chain falls apart into states
//! that it practically never leaves, and values grow without bound: they are cut at [`HORIZON`]
//! decisions, and the best of the policies seen is taken.

use crate::cancel::CancelFlag;
use crate::error::PrepareError;
use crate::mix::Mixer;
use crate::problem::DecisionProcess;

/// Convergence threshold: the total change of a distribution, the change of a value.
const SETTLED: f64 = 1e-12;

/// The threshold while the policy still changes.
const ROUGHLY: f64 = 1e-7;

/// An action replaces another if it is better by this multiple of the threshold.
const BETTER: f64 = 100.0;

/// Number of policies after which the best of them is taken. A few suffice unless the load is far
/// beyond capacity, where policies can cycle.
const ROUNDS_MAX: usize = 50;

/// Values that have not converged after this many steps are used: those of this many decisions.
const HORIZON: usize = 1_000;

const SWEEPS_MAX: usize = 100_000;

/// From this sweep on half of every state's probability stays, so that nearly periodic chains
/// converge too.
const LAZY_FROM: usize = 500;

/// A policy with its stationary distribution and gain.
pub(crate) struct Solution {
    /// The choice of every state.
    pub(crate) policy: Vec<usize>,
    /// Chance of each state at a decision.
    pub(crate) stationary: Vec<f64>,
    /// Reward per weight.
    pub(crate) gain: f64,
    values: Vec<f64>,
}

/// Solves one decision process.
pub(crate) struct Solver<'a> {
    problem: &'a DecisionProcess,
    offsets: Vec<usize>,
    /// Buffer per kernel and phase: expectations of values, or probability.
    scratch: Vec<f64>,
    stop: CancelFlag<'a>,
}

// === impl Solver ===

impl<'a> Solver<'a> {
    pub(crate) fn new(problem: &'a DecisionProcess, stop: CancelFlag<'a>) -> Self {
        let offsets = problem.phase_offsets();
        let phases = offsets.last().copied().unwrap_or_default();
        Self {
            problem,
            offsets,
            scratch: vec![0.0; phases],
            stop,
        }
    }

    /// The best policy.
    ///
    /// # Errors
    /// No convergence, or the caller cancelled.
    pub(crate) fn solve(&mut self, load_rps: f64) -> Result<Solution, PrepareError> {
        let problem = self.problem;
        let states = 0..problem.space.len();
        // The first choice is the fastest, with which the chain mixes fast.
        let policy = states.map(|state| problem.choices(state).start).collect();
        self.improve_from(policy, load_rps)
    }

    /// The stationary distribution and gain of a policy.
    ///
    /// # Errors
    /// No convergence, or the caller cancelled.
    pub(crate) fn evaluate(
        &mut self,
        policy: Vec<usize>,
        load_rps: f64,
    ) -> Result<Solution, PrepareError> {
        let mut solution = self.begin(policy);
        self.settle_distribution(&mut solution, SETTLED, load_rps)?;
        Ok(solution)
    }

    /// The best policy found from a first policy.
    ///
    /// # Errors
    /// No convergence, or the caller cancelled.
    pub(crate) fn improve_from(
        &mut self,
        policy: Vec<usize>,
        load_rps: f64,
    ) -> Result<Solution, PrepareError> {
        let mut solution = self.begin(policy);
        let mut best: Option<(f64, Vec<usize>)> = None;
        let mut settled = ROUGHLY;
        for _ in 0..ROUNDS_MAX {
            self.settle_distribution(&mut solution, settled, load_rps)?;
            if best.as_ref().is_none_or(|(gain, _)| solution.gain > *gain) {
                best = Some((solution.gain, solution.policy.clone()));
            }
            self.settle_values(&mut solution, settled)?;
            if !self.improve(&mut solution, BETTER * settled) {
                if settled == SETTLED {
                    return Ok(solution);
                }
                settled = SETTLED;
            }
        }
        match best {
            Some((_, policy)) => self.evaluate(policy, load_rps),
            None => Ok(solution),
        }
    }

    fn begin(&self, policy: Vec<usize>) -> Solution {
        let states = self.problem.space.len();
        let mut stationary = vec![0.0; states];
        stationary[self.problem.space.emptied()] = 1.0;
        Solution {
            policy,
            stationary,
            gain: 0.0,
            values: vec![0.0; states],
        }
    }

    /// The kernels that a policy uses.
    fn used(&self, policy: &[usize]) -> Vec<usize> {
        let mut used: Vec<usize> = policy.iter().map(|&c| self.problem.kernel_of(c)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    fn phases_of(&self, kernel: usize) -> std::ops::Range<usize> {
        self.offsets[kernel]..self.offsets[kernel + 1]
    }

    /// Iterates to the stationary distribution, and computes the gain.
    fn settle_distribution(
        &mut self,
        solution: &mut Solution,
        settled: f64,
        load_rps: f64,
    ) -> Result<(), PrepareError> {
        let problem = self.problem;
        let used = self.used(&solution.policy);
        let mut mixer = Mixer::default();
        let mut next = vec![0.0; solution.stationary.len()];
        let mut change = f64::INFINITY;
        for sweep in 0..SWEEPS_MAX {
            self.stop.check()?;
            self.step(&solution.policy, &used, &solution.stationary, &mut next);
            let before = solution.stationary.iter();
            change = before.zip(&next).map(|(a, b)| (a - b).abs()).sum();
            if change < settled {
                break;
            }
            if sweep >= LAZY_FROM {
                for (next, before) in next.iter_mut().zip(&solution.stationary) {
                    *next = 0.5 * (*next + before);
                }
            }
            mixer.advance(&mut solution.stationary, &next);
            if sweep == LAZY_FROM {
                mixer = Mixer::default();
            }
            // Corrects the rounding of mixed steps.
            let total: f64 = solution.stationary.iter().sum();
            let scale = |chance: &mut f64| *chance /= total;
            solution.stationary.iter_mut().for_each(scale);
        }
        if change.is_nan() || change >= settled {
            return Err(PrepareError::Unsettled {
                load_rps,
                quantity: "the stationary distribution",
                steps: SWEEPS_MAX,
            });
        }
        // Mixed steps can be below 0 by at most the threshold.
        for chance in &mut solution.stationary {
            *chance = chance.max(0.0);
        }
        let total: f64 = solution.stationary.iter().sum();
        let scale = |chance: &mut f64| *chance /= total;
        solution.stationary.iter_mut().for_each(scale);
        let choices = solution.policy.iter().map(|&c| problem.choice(c));
        let (reward, weight) = choices.zip(&solution.stationary).fold(
            (0.0, 0.0),
            |(reward, weight), (choice, chance)| {
                (
                    reward + chance * choice.reward,
                    weight + chance * choice.weight,
                )
            },
        );
        solution.gain = reward / weight;
        Ok(())
    }

    /// One step of the chain under a policy.
    fn step(&mut self, policy: &[usize], used: &[usize], before: &[f64], next: &mut [f64]) {
        let problem = self.problem;
        for &kernel in used {
            let phases = self.phases_of(kernel);
            self.scratch[phases].fill(0.0);
        }
        for (state, (&choice, &chance)) in policy.iter().zip(before).enumerate() {
            if chance == 0.0 {
                continue;
            }
            let phases = self.phases_of(problem.kernel_of(choice));
            match &mut self.scratch[phases] {
                [only] => *only += chance,
                mass => {
                    for (mass, weight) in mass.iter_mut().zip(problem.weights(state)) {
                        *mass += chance * weight;
                    }
                }
            }
        }
        next.fill(0.0);
        for &kernel in used {
            let mass = &self.scratch[self.phases_of(kernel)];
            problem.kernels[kernel].push(mass, next);
        }
    }

    /// Iterates to the relative values of a policy.
    fn settle_values(&mut self, solution: &mut Solution, settled: f64) -> Result<(), PrepareError> {
        let problem = self.problem;
        let used = self.used(&solution.policy);
        let mut mixer = Mixer::default();
        let mut next = vec![0.0; solution.values.len()];
        for sweep in 0..HORIZON {
            self.stop.check()?;
            self.expect(&used, &solution.values);
            for (state, &c) in solution.policy.iter().enumerate() {
                let choice = problem.choice(c);
                next[state] = choice.reward - solution.gain * choice.weight + self.ahead(state, c);
            }
            // Only differences matter: the first state's value is 0.
            let origin = next[0];
            let mut change: f64 = 0.0;
            for (next, value) in next.iter_mut().zip(&solution.values) {
                *next -= origin;
                change = change.max((*next - value).abs());
            }
            if change < settled {
                return Ok(());
            }
            if sweep >= LAZY_FROM {
                for (next, value) in next.iter_mut().zip(&solution.values) {
                    *next = 0.5 * (*next + value);
                }
            }
            mixer.advance(&mut solution.values, &next);
            if sweep == LAZY_FROM {
                mixer = Mixer::default();
            }
        }
        Ok(())
    }

    /// Takes the best choice of every state if it is better by `better`. Returns whether any
    /// changed.
    fn improve(&mut self, solution: &mut Solution, better: f64) -> bool {
        let problem = self.problem;
        let all: Vec<usize> = (0..problem.kernels.len()).collect();
        self.expect(&all, &solution.values);
        let mut changed = false;
        for (state, kept) in solution.policy.iter_mut().enumerate() {
            let value = |c: usize| {
                let choice = problem.choice(c);
                choice.reward - solution.gain * choice.weight + self.ahead(state, c)
            };
            let mut best = (value(*kept), *kept);
            for c in problem.choices(state) {
                let value = value(c);
                if value > best.0 + better {
                    best = (value, c);
                }
            }
            changed |= best.1 != *kept;
            *kept = best.1;
        }
        changed
    }

    /// Writes the expectations of the values, kernel by kernel, into the buffer.
    fn expect(&mut self, kernels: &[usize], values: &[f64]) {
        for &kernel in kernels {
            let phases = self.phases_of(kernel);
            self.problem.kernels[kernel].expect(values, &mut self.scratch[phases]);
        }
    }

    /// Expected value of the next state after a choice.
    fn ahead(&self, state: usize, choice: usize) -> f64 {
        let phases = self.phases_of(self.problem.kernel_of(choice));
        self.problem.mix(state, &self.scratch[phases])
    }
}

#[cfg(test)]
mod tests;
