//! A policy that carries out a schedule made before the first arrival.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers};
use switchyard_core::time::Time;
use switchyard_core::window::{IDLE, Window};

use super::goal::Goal;
use super::search;
use super::tasks::{ArrivalTask, RunTasks};
use crate::scenario::{Scenario, SimError};

/// Runs every request of one run on its scheduled worker, in the scheduled order.
pub(crate) struct Clairvoyant {
    description: Description,
    tasks: Vec<ArrivalTask>,
    /// By worker: its tasks, in the order in which it runs them.
    orders: Vec<Vec<u32>>,
    /// By worker: its tasks that have been dispatched.
    dispatched: Vec<usize>,
}

// === impl Clairvoyant ===

impl Clairvoyant {
    /// Makes the schedule.
    pub(crate) fn of_run(scenario: &Scenario, seed: u64, goal: Goal) -> Result<Self, SimError> {
        let tasks = RunTasks::of_run(scenario, seed)?;
        let orders = search::schedule(&tasks, goal, seed);
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
            dispatched: vec![0; orders.len()],
            tasks: tasks.list,
            orders,
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

    /// An idle worker runs its next task, or waits until the task arrives.
    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let mut taken = vec![false; window.len()];
        for (worker, order) in self.orders.iter().enumerate() {
            let is_idle = window.workers.running_variant[worker] == IDLE
                && window.workers.queued[worker] == 0;
            let Some(&next) = order.get(self.dispatched[worker]).filter(|_| is_idle) else {
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
            let (Some(at), Some(option)) = (found, task.options[worker]) else {
                continue;
            };
            taken[at] = true;
            self.dispatched[worker] += 1;
            let batch = Dispatch {
                worker: WorkerId(worker as u32),
                variant: option.variant,
                from_stage: 0,
                to_stage: option.stages,
                exit: Some(option.exit),
                place: 0,
                size: 1,
            };
            plan.dispatch(batch, [RequestId(window.requests.id[at])]);
        }
        Ok(())
    }
}
