//! A policy that carries out a schedule made before the first arrival.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers};
use switchyard_core::time::Time;
use switchyard_core::window::{IDLE, Window};

use super::goal::Goal;
use super::menu::BatchMenu;
use super::tasks::{ArrivalTask, RunTasks, ScheduledBatch};
use super::{exact, search};
use crate::hardware::ServiceTimes;
use crate::scenario::{Scenario, SimError};
use crate::workload::WorkloadError;

/// Runs the batches of one run on their workers, in the scheduled order.
pub(crate) struct Clairvoyant {
    description: Description,
    tasks: Vec<ArrivalTask>,
    /// By worker: its batches, in the order in which it runs them.
    orders: Vec<Vec<ScheduledBatch>>,
    /// By worker: its batches that have been dispatched.
    dispatched: Vec<usize>,
}

// === impl Clairvoyant ===

impl Clairvoyant {
    /// Makes the schedule.
    pub(crate) fn of_run(scenario: &Scenario, seed: u64, goal: Goal) -> Result<Self, SimError> {
        let tasks = RunTasks::of_run(scenario, seed)?;
        let orders = match goal {
            Goal::Goodput => exact_orders(scenario, &tasks)?,
            goal => orders_of_one(&tasks, search::schedule(&tasks, goal, seed)),
        };
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

    /// The requests of a batch in a window; none until all of them have arrived.
    fn found(&self, batch: &ScheduledBatch, window: &Window, taken: &[bool]) -> Option<Vec<usize>> {
        let mut found: Vec<usize> = Vec::with_capacity(batch.tasks.len());
        for &task in &batch.tasks {
            let task = &self.tasks[task as usize];
            let is_it = |i: &usize| {
                let r = &window.requests;
                !taken[*i]
                    && !found.contains(i)
                    && r.app[*i] == task.app.0
                    && Time(r.arrival[*i]) == task.arrival
                    && Time(r.deadline[*i]) == task.deadline
            };
            let at = (0..window.len()).find(is_it)?;
            found.push(at);
        }
        Some(found)
    }
}

/// The optimal schedule of a run.
fn exact_orders(
    scenario: &Scenario,
    tasks: &RunTasks,
) -> Result<Vec<Vec<ScheduledBatch>>, SimError> {
    if scenario.service != ServiceTimes::Profiled {
        let reason = "must be profiled: an exact schedule knows every latency";
        return Err(WorkloadError::value("service", reason).into());
    }
    let menu = BatchMenu::new(&scenario.catalog)?;
    let kinds: Vec<_> = scenario.catalog.workers.iter().map(|w| w.kind).collect();
    let schedule = exact::schedule(tasks, &menu, &kinds)?;
    let mut orders = vec![Vec::new(); tasks.workers];
    for batch in schedule.batches {
        orders[batch.worker.index()].push(batch);
    }
    Ok(orders)
}

/// Batches of one, by worker.
fn orders_of_one(tasks: &RunTasks, orders: Vec<Vec<u32>>) -> Vec<Vec<ScheduledBatch>> {
    let workers = (0..).map(WorkerId).zip(orders);
    let batch = |worker: WorkerId, task: u32| {
        let option = tasks.list[task as usize].options[worker.index()]?;
        Some(ScheduledBatch {
            worker,
            variant: option.variant,
            exit: option.exit,
            stages: option.stages,
            tasks: vec![task],
        })
    };
    workers
        .map(|(worker, order)| {
            let batches = order.into_iter().filter_map(|task| batch(worker, task));
            batches.collect()
        })
        .collect()
}

impl Policy for Clairvoyant {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _catalog: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    /// An idle worker runs its next batch, or waits until its requests have arrived.
    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let mut taken = vec![false; window.len()];
        for worker in 0..self.orders.len() {
            let is_idle = window.workers.running_variant[worker] == IDLE
                && window.workers.queued[worker] == 0;
            let next = self.orders[worker].get(self.dispatched[worker]);
            let Some(batch) = next.filter(|_| is_idle) else {
                continue;
            };
            let Some(found) = self.found(batch, window, &taken) else {
                continue;
            };
            let dispatch = Dispatch {
                worker: batch.worker,
                variant: batch.variant,
                from_stage: 0,
                to_stage: batch.stages,
                exit: Some(batch.exit),
                place: 0,
                size: found.len() as u32,
            };
            found.iter().for_each(|&at| taken[at] = true);
            self.dispatched[worker] += 1;
            let ids = found.iter().map(|&at| RequestId(window.requests.id[at]));
            plan.dispatch(dispatch, ids);
        }
        Ok(())
    }
}
