//! The decision process: states, what can be run in each, what it earns and where it leads.

use ramsis_tables::{Action, Batching, Objective};

use crate::error::PrepareError;
use crate::kernel::{Kernel, dot};
use crate::space::Space;
use crate::spec::Model;
use crate::stop::Stop;

/// Where batches lead: the balancing's part of the transition law.
pub(crate) trait Transitions {
    /// Phases that a state can be in without knowing it.
    fn phases(&self) -> usize;

    /// The distribution of a state's phase.
    fn phase_chances(&self, queued: usize, slack: usize, chances: &mut [f64]);

    /// The next state after a batch of the whole queue, by phase.
    fn whole(&self, batch: usize, latency_us: u64) -> Result<Kernel, PrepareError>;

    /// The next states after batches of this size and latency that leave others waiting, one
    /// kernel of one phase per place (queued, slack).
    fn part(
        &self,
        batch: usize,
        latency_us: u64,
        places: &[(usize, usize)],
    ) -> Result<Vec<Kernel>, PrepareError>;
}

/// What may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// What meets the slack, else the fastest variant (section 4.3.1).
    Feasible(Batching),
    /// This variant, always, whatever the slack.
    Only(usize),
}

/// Something that can be run in a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) action: Action,
    /// Accuracy where the earliest deadline is met, else 0.
    pub(crate) accuracy: f64,
    /// Whether the earliest deadline is met.
    pub(crate) in_time: bool,
    pub(crate) reward: f64,
    /// What the reward is divided by: 1 per decision, or the requests served.
    pub(crate) weight: f64,
    kernel: u32,
}

pub(crate) struct Problem {
    pub(crate) space: Space,
    pub(crate) kernels: Vec<Kernel>,
    choices: Vec<Choice>,
    /// Where a state's choices begin; one more at the end.
    first: Vec<u32>,
    phases: usize,
    /// Chances of the phases, state by state.
    weights: Vec<f64>,
}

/// What it is built from.
pub(crate) struct Parts<'a> {
    pub(crate) space: &'a Space,
    pub(crate) models: &'a [Model],
    pub(crate) objective: Objective,
    pub(crate) offer: Offer,
}

// === impl Parts ===

impl Parts<'_> {
    /// The decision process under a transition law.
    pub(crate) fn build(
        &self,
        transitions: &impl Transitions,
        stop: Stop<'_>,
    ) -> Result<Problem, PrepareError> {
        let space = self.space;
        let phases = transitions.phases();
        let mut weights = vec![0.0; space.len() * phases];
        for (state, chances) in weights.chunks_exact_mut(phases).enumerate() {
            let (queued, slack) = space.place(state);
            transitions.phase_chances(queued, slack, chances);
        }
        let mut choices = Vec::new();
        let mut first = vec![0];
        for state in 0..space.len() {
            self.offers(state, &mut choices);
            first.push(choices.len() as u32);
        }
        let mut problem = Problem {
            space: space.clone(),
            kernels: Vec::new(),
            choices,
            first,
            phases,
            weights,
        };
        self.lead(&mut problem, transitions, stop)?;
        Ok(problem)
    }

    fn offers(&self, state: usize, choices: &mut Vec<Choice>) {
        let space = self.space;
        let (queued, slack) = space.place(state);
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

    /// Latency of a batch; beyond all bounds where the variant does not take it.
    fn latency(&self, variant: usize, batch: usize) -> u64 {
        self.models[variant].latency_of(batch).unwrap_or(u64::MAX)
    }

    fn choice(&self, queued: usize, variant: usize, batch: usize, in_time: bool) -> Choice {
        let accuracy = if in_time {
            self.models[variant].accuracy
        } else {
            0.0
        };
        let (share, weight) = match self.objective {
            // Of a part of the queue, that part of the reward, as in the public artifact: else
            // one request at a time would be best.
            Objective::Decision => (batch as f64 / queued as f64, 1.0),
            Objective::Query => (batch as f64, batch as f64),
        };
        Choice {
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

    /// Makes the kernels: one per queue length and variant for whole queues, one per state,
    /// variant and batch for parts.
    fn lead(
        &self,
        problem: &mut Problem,
        transitions: &impl Transitions,
        stop: Stop<'_>,
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
            let queued = |state: usize| problem.space.place(state).0;
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
            let places: Vec<_> = part
                .iter()
                .map(|&(state, _)| problem.space.place(state))
                .collect();
            let kernels = transitions.part(batch, latency_us, &places)?;
            for ((_, choice), kernel) in part.into_iter().zip(kernels) {
                problem.choices[choice].kernel = problem.kernels.len() as u32;
                problem.kernels.push(kernel);
            }
        }
        Ok(())
    }
}

// === impl Problem ===

impl Problem {
    /// Positions of what can be run in a state.
    pub(crate) fn choices(&self, state: usize) -> std::ops::Range<usize> {
        self.first[state] as usize..self.first[state + 1] as usize
    }

    pub(crate) fn choice(&self, choice: usize) -> &Choice {
        &self.choices[choice]
    }

    /// Where each kernel's phases begin when those of all stand in a row; one more at the end.
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

    /// Mixes a kernel's expectations by the chances of a state's phases.
    pub(crate) fn mix(&self, state: usize, expected: &[f64]) -> f64 {
        match expected {
            [only] => *only,
            _ => dot(self.weights(state), expected),
        }
    }
}
