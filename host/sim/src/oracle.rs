//! What a scheduler could do that knows every arrival beforehand, and what none can.
//!
//! - `tasks`: the requests of a run, drawn as the run will draw them
//! - `search`: a good schedule of them, found by large neighbourhood search
//! - `bound`: an ANTT that no schedule of them can be below, preemptive or not
//! - here: a policy that carries the schedule out, so that what it is worth is counted by the
//!   simulator like everybody else's
//!
//! The schedule found is feasible, not proved best: the best lies between it and the bound. Each
//! request runs alone and whole, on each worker by its app's fastest variant there, as in MAEL's
//! setting; what batches, slices or less accurate exits could gain is not looked for.

mod bound;
mod search;
mod tasks;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers};
use switchyard_core::time::Time;
use switchyard_core::window::{IDLE, Window};

use crate::scenario::{Scenario, SimError};
use tasks::{Task, Tasks};

/// What the schedule is to be good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The least mean of turnaround over the latency alone on the best worker (ANTT).
    Turnaround,
    /// The fewest requests past their deadlines, then the least ANTT.
    Deadlines,
}

/// Runs every request of one run where and when it was decided before the first arrived.
pub(crate) struct Clairvoyant {
    description: Description,
    tasks: Vec<Task>,
    /// Tasks of each worker, in the order in which they run there.
    lines: Vec<Vec<u32>>,
    /// How many of each line have been placed.
    placed: Vec<usize>,
}

/// The least ANTT that any schedule of this run could have.
pub(crate) fn antt_least(scenario: &Scenario, seed: u64) -> Result<f64, SimError> {
    Ok(bound::antt(&Tasks::of_run(scenario, seed)?))
}

// === impl Goal ===

impl Goal {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Turnaround, Self::Deadlines];

    /// Name where policies are named.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turnaround => "oracle-antt",
            Self::Deadlines => "oracle-slo",
        }
    }
}

// === impl Clairvoyant ===

impl Clairvoyant {
    /// Decides everything.
    pub(crate) fn of_run(scenario: &Scenario, seed: u64, goal: Goal) -> Result<Self, SimError> {
        let tasks = Tasks::of_run(scenario, seed)?;
        let lines = search::schedule(&tasks, goal, seed);
        Ok(Self {
            description: Description {
                name: goal.name().to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                summary: "knows every arrival".to_owned(),
                on: Triggers {
                    arrival: true,
                    worker_idle: true,
                    ..Triggers::default()
                },
                ..Description::default()
            },
            placed: vec![0; lines.len()],
            tasks: tasks.list,
            lines,
        })
    }
}

impl Policy for Clairvoyant {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _catalog: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    /// An idle worker runs the next of its line, or waits for it.
    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let mut taken = vec![false; window.len()];
        for (worker, line) in self.lines.iter().enumerate() {
            let is_idle = window.workers.running_variant[worker] == IDLE
                && window.workers.queued[worker] == 0;
            let Some(&next) = line.get(self.placed[worker]).filter(|_| is_idle) else {
                continue;
            };
            let task = &self.tasks[next as usize];
            let is_it = |&i: &usize| {
                let r = &window.requests;
                !taken[i]
                    && r.app[i] == task.app.0
                    && Time(r.arrival[i]) == task.arrival
                    && Time(r.deadline[i]) == task.deadline
            };
            let found = (0..window.len()).find(is_it);
            let (Some(at), Some(way)) = (found, task.ways[worker]) else {
                continue;
            };
            taken[at] = true;
            self.placed[worker] += 1;
            let batch = Dispatch {
                worker: WorkerId(worker as u32),
                variant: way.variant,
                from_stage: 0,
                to_stage: way.stages,
                exit: Some(way.exit),
                place: 0,
                size: 1,
            };
            plan.dispatch(batch, [RequestId(window.requests.id[at])]);
        }
        Ok(())
    }
}
