//! Policy iteration for a ratio of rewards to weights.
//!
//! With rewards r, weights w and the stationary distribution mu of a policy, its gain is
//! g = sum mu r / sum mu w, and its relative values solve h = r - g w + P h. A policy that is
//! greedy for r - g w + P h has a gain no smaller; where none is better, g is the largest
//! (Howard's iteration for semi-Markov processes; the same as Dinkelbach's for the ratio). With
//! w = 1 it is the average reward per decision, with w = requests served that per request.

use crate::error::PrepareError;
use crate::mix::Mixer;
use crate::problem::Problem;
use crate::stop::Stop;

/// Largest change of a distribution in all, and of a value, that counts as none.
const SETTLED: f64 = 1e-12;

/// The same while the policy still changes in large steps.
const ROUGHLY: f64 = 1e-7;

/// An action must promise more than another by so many times what counts as no change.
const BETTER: f64 = 100.0;

/// After so many policies the best of them is taken. A handful are needed where the chain mixes;
/// far beyond capacity it falls apart into states that it cannot leave within any time that
/// counts, values grow without end, and policies can follow each other in circles.
const ROUNDS_MAX: usize = 50;

/// Values that have not settled by then are used as they are: those of so many decisions to come.
const HORIZON: usize = 1_000;

const SWEEPS_MAX: usize = 100_000;

/// From here on half of every state's probability stays: a chain that is all but periodic settles
/// too.
const LAZY_FROM: usize = 500;

/// A policy and what follows from it.
pub(crate) struct Solution {
    /// The choice of every state.
    pub(crate) policy: Vec<usize>,
    /// Chance of each state at a decision.
    pub(crate) stationary: Vec<f64>,
    /// Reward per weight.
    pub(crate) gain: f64,
    values: Vec<f64>,
}

/// Works on one problem.
pub(crate) struct Solver<'a> {
    problem: &'a Problem,
    offsets: Vec<usize>,
    /// Per kernel and phase: expectations of values, or probability.
    scratch: Vec<f64>,
    stop: Stop<'a>,
}

// === impl Solver ===

impl<'a> Solver<'a> {
    pub(crate) fn new(problem: &'a Problem, stop: Stop<'a>) -> Self {
        let offsets = problem.phase_offsets();
        let phases = offsets.last().copied().unwrap_or_default();
        Self {
            problem,
            offsets,
            scratch: vec![0.0; phases],
            stop,
        }
    }

    /// The best policy, and what follows from it.
    ///
    /// # Errors
    /// It did not settle, or was asked to stop.
    pub(crate) fn solve(&mut self, load_rps: f64) -> Result<Solution, PrepareError> {
        let problem = self.problem;
        let states = 0..problem.space.len();
        // The first is the fastest: a policy under which the chain mixes fast.
        let policy = states.map(|state| problem.choices(state).start).collect();
        self.improve_from(policy, load_rps)
    }

    /// What follows from a policy.
    ///
    /// # Errors
    /// It did not settle, or was asked to stop.
    pub(crate) fn evaluate(
        &mut self,
        policy: Vec<usize>,
        load_rps: f64,
    ) -> Result<Solution, PrepareError> {
        let mut solution = self.begin(policy);
        self.settle_distribution(&mut solution, SETTLED, load_rps)?;
        Ok(solution)
    }

    /// The best policy found from this one on, and what follows from it.
    ///
    /// # Errors
    /// It did not settle, or was asked to stop.
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

    /// Kernels that a policy uses.
    fn used(&self, policy: &[usize]) -> Vec<usize> {
        let mut used: Vec<usize> = policy.iter().map(|&c| self.problem.kernel_of(c)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    fn phases_of(&self, kernel: usize) -> std::ops::Range<usize> {
        self.offsets[kernel]..self.offsets[kernel + 1]
    }

    /// The stationary distribution by repeated steps from the one at hand, and the gain.
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
            // Mixed steps add up rounding.
            let total: f64 = solution.stationary.iter().sum();
            let scale = |chance: &mut f64| *chance /= total;
            solution.stationary.iter_mut().for_each(scale);
        }
        if change.is_nan() || change >= settled {
            return Err(PrepareError::Unsettled {
                load_rps,
                what: "the stationary distribution",
                steps: SWEEPS_MAX,
            });
        }
        // Mixed steps overshoot below 0 by no more than what counts as settled.
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

    /// The relative values of a policy, by repeated steps from those at hand.
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
            // Only differences matter: the first state's value is kept at 0.
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

    /// Takes the best choice of every state where it is better by so much. Whether any changed.
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

    /// Expectations of the values, kernel by kernel, into the scratch.
    fn expect(&mut self, kernels: &[usize], values: &[f64]) {
        for &kernel in kernels {
            let phases = self.phases_of(kernel);
            self.problem.kernels[kernel].expect(values, &mut self.scratch[phases]);
        }
    }

    /// Expected value of what follows a choice.
    fn ahead(&self, state: usize, choice: usize) -> f64 {
        let phases = self.phases_of(self.problem.kernel_of(choice));
        self.problem.mix(state, &self.scratch[phases])
    }
}

#[cfg(test)]
mod tests;
