//! The decision process: states, actions, rewards, transitions.

use ramsis_tables::{Action, Batching, Objective};

use crate::cancel::CancelFlag;
use crate::error::PrepareError;
use crate::kernel::{Kernel, dot};
use crate::model::Model;
use crate::space::StateSpace;

/// The transition law of a balancing rule.
pub(crate) trait Transitions {
    /// Number of hidden phases of a state.
    fn phases(&self) -> usize;

    /// The distribution of a state's phase.
    fn phase_chances(&self, queued: usize, slack: usize, chances: &mut [f64]);

    /// The next state after a batch of the whole queue, by phase.
    fn whole(&self, batch: usize, latency_us: u64) -> Result<Kernel, PrepareError>;

    /// The next states after batches of this size and latency that leave requests waiting: one
    /// kernel of one phase per (queued, slack).
    fn part(
        &self,
        batch: usize,
        latency_us: u64,
        states: &[(usize, usize)],
    ) -> Result<Vec<Kernel>, PrepareError>;
}

/// The allowed actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Actions that meet the slack, otherwise the fastest variant (section 4.3.1).
    Feasible(Batching),
    /// Always this variant.
    Only(usize),
}

/// An action of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ActionChoice {
    pub(crate) action: Action,
    /// Accuracy if the earliest deadline is met, otherwise 0.
    pub(crate) accuracy: f64,
    /// Whether the earliest deadline is met.
    pub(crate) in_time: bool,
    pub(crate) reward: f64,
    /// Denominator of the objective: 1 per decision, or the served requests.
    pub(crate) weight: f64,
    kernel: u32,
}

/// The decision process of a table.
pub(crate) struct DecisionProcess {
    pub(crate) space: StateSpace,
    pub(crate) kernels: Vec<Kernel>,
    choices: Vec<ActionChoice>,
    /// Per state, the index of its first choice; then the number of choices.
    first: Vec<u32>,
    phases: usize,
    /// Chances of the phases, state by state.
    weights: Vec<f64>,
}

/// The inputs of a decision process.
pub(crate) struct ProcessInputs<'a> {
    pub(crate) space: &'a StateSpace,
    pub(crate) models: &'a [Model],
    pub(crate) objective: Objective,
    pub(crate) offer: Offer,
}

// === impl ProcessInputs ===

impl ProcessInputs<'_> {
    /// The decision process under a transition law.
    pub(crate) fn build(
        &self,
        transitions: &impl Transitions,
        stop: CancelFlag<'_>,
    ) -> Result<DecisionProcess, PrepareError> {
        let space = self.space;
        let phases = transitions.phases();
        let mut weights = vec![0.0; space.len() * phases];
        for (state, chances) in weights.chunks_exact_mut(phases).enumerate() {
            let (queued, slack) = space.queue_and_slack(state);
            transitions.phase_chances(queued, slack, chances);
        }
        let mut choices = Vec::new();
        let mut first = vec![0];
        for state in 0..space.len() {
            self.add_choices(state, &mut choices);
            first.push(choices.len() as u32);
        }
        let mut problem = DecisionProcess {
            space: space.clone(),
            kernels: Vec::new(),
            choices,
            first,
            phases,
            weights,
        };
        self.build_kernels(&mut problem, transitions, stop)?;
        Ok(problem)
    }

    fn add_choices(&self, state: usize, choices: &mut Vec<ActionChoice>) {
        let space = self.space;
        let (queued, slack) = space.queue_and_slack(state);
        let slack_us = space.slack_us[slack];
        let begin = choices.len();
        let full = state == space.full();
        let batches = match self.offer {
            Offer::Only(variant) => {
                let late = full || self.latency(variant, queued) > slack_us;
                choices.push(self.choice(queued, variant, queued, !late));
                return;
            }
            Offer::Feasible(Batching::Variable) => 1..=queued,
            Offer::Feasible(Batching::Maximal) => queued..=queued,
        };
        if !full {
            for batch in batches {
                for variant in 0..self.models.len() {
                    if self.latency(variant, batch) <= slack_us {
                        choices.push(self.choice(queued, variant, batch, true));
                    }
                }
            }
        }
        if choices.len() == begin {
            let fastest = (0..self.models.len()).min_by_key(|&m| self.latency(m, queued));
            choices.push(self.choice(queued, fastest.unwrap_or_default(), queued, false));
        }
    }

    /// Latency of a batch; `u64::MAX` beyond the variant's largest.
    fn latency(&self, variant: usize, batch: usize) -> u64 {
        self.models[variant].latency_of(batch).unwrap_or(u64::MAX)
    }

    fn choice(&self, queued: usize, variant: usize, batch: usize, in_time: bool) -> ActionChoice {
        let accuracy = if in_time {
            self.models[variant].accuracy
        } else {
            0.0
        };
        let (share, weight) = match self.objective {
            // For a part of the queue that part of the reward, as in the public artifact: otherwise
            // batches of one would be best.
            Objective::Decision => (batch as f64 / queued as f64, 1.0),
            Objective::Query => (batch as f64, batch as f64),
        };
        ActionChoice {
            action: Action {
                variant: variant as u8,
                batch: batch as u8,
            },
            accuracy,
            in_time,
            reward: accuracy * share,
            weight,
            kernel: u32::MAX,
        }
    }

    /// Builds the kernels: one per queue length and variant for whole queues, one per state,
    /// variant and batch for parts.
    fn build_kernels(
        &self,
        problem: &mut DecisionProcess,
        transitions: &impl Transitions,
        stop: CancelFlag<'_>,
    ) -> Result<(), PrepareError> {
        let mut by_action: Vec<Vec<(usize, usize)>> = vec![Vec::new(); 1 << 16];
        for state in 0..problem.space.len() {
            for c in problem.first[state]..problem.first[state + 1] {
                let Action { variant, batch } = problem.choices[c as usize].action;
                by_action[usize::from(variant) << 8 | usize::from(batch)].push((state, c as usize));
            }
        }
        for (action, users) in by_action.iter().enumerate() {
            let (variant, batch) = (action >> 8, action & 0xff);
            let queued = |state: usize| problem.space.queue_and_slack(state).0;
            let (whole, part): (Vec<_>, Vec<_>) = users
                .iter()
                .partition(|&&(state, _)| queued(state) == batch);
            if users.is_empty() {
                continue;
            }
            stop.check()?;
            let latency_us = self.latency(variant, batch);
            if !whole.is_empty() {
                let kernel = problem.kernels.len() as u32;
                problem.kernels.push(transitions.whole(batch, latency_us)?);
                for (_, choice) in whole {
                    problem.choices[choice].kernel = kernel;
                }
            }
            let states: Vec<_> = part
                .iter()
                .map(|&(state, _)| problem.space.queue_and_slack(state))
                .collect();
            let kernels = transitions.part(batch, latency_us, &states)?;
            for ((_, choice), kernel) in part.into_iter().zip(kernels) {
                problem.choices[choice].kernel = problem.kernels.len() as u32;
                problem.kernels.push(kernel);
            }
        }
        Ok(())
    }
}

// === impl DecisionProcess ===

impl DecisionProcess {
    /// Indices of a state's choices.
    pub(crate) fn choices(&self, state: usize) -> std::ops::Range<usize> {
        self.first[state] as usize..self.first[state + 1] as usize
    }

    pub(crate) fn choice(&self, choice: usize) -> &ActionChoice {
        &self.choices[choice]
    }

    /// Offsets of each kernel's phases in the concatenation of all; then their number.
    pub(crate) fn phase_offsets(&self) -> Vec<usize> {
        let mut offsets = vec![0];
        let mut end = 0;
        for kernel in &self.kernels {
            end += kernel.phases();
            offsets.push(end);
        }
        offsets
    }

    pub(crate) fn kernel_of(&self, choice: usize) -> usize {
        self.choices[choice].kernel as usize
    }

    /// Chances of a state's phases.
    pub(crate) fn weights(&self, state: usize) -> &[f64] {
        &self.weights[state * self.phases..(state + 1) * self.phases]
    }

    /// Weighted mean of a kernel's expectations over a state's phases.
    pub(crate) fn mix(&self, state: usize, expected: &[f64]) -> f64 {
        match expected {
            [only] => *only,
            _ => dot(self.weights(state), expected),
        }
    }
}
