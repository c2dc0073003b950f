//! The window's new tasks, T of the algorithms, and their workers.

use switchyard_sdk::window::Placed;
use switchyard_sdk::{RequestRef, Window};

use crate::models::{CostTable, VariantCost};
use crate::observe::pending;
use crate::problem::{MappingProblem, TaskTimes};
use crate::queue::{EntryState, QueueEntry, RunLength, WorkerQueue};
use crate::score::ScoreRule;
use crate::search::{self, Optimality};
use crate::settings::{MaelAlgorithm, MaelSettings, TASKS_MAX};

/// One task with its cost on every processor.
pub(crate) struct NewTask {
    /// Its queue entry with no work.
    entry: QueueEntry,
    /// Per queue; none if the task cannot run there now.
    costs: Vec<Option<TaskCost>>,
    /// The least latency.
    fastest_us: u64,
}

/// The cost of a task on one processor.
#[derive(Clone, Copy)]
struct TaskCost {
    latency_us: u64,
    energy_uj: u64,
    length: RunLength,
}

/// Maps tasks to queues.
pub(crate) struct Placer<'a> {
    pub(crate) window: Window<'a>,
    pub(crate) models: &'a CostTable,
    pub(crate) settings: &'a MaelSettings,
    /// SliceMode at the start of this window.
    pub(crate) slices: bool,
}

// === impl Placer ===

impl Placer<'_> {
    /// The requests that some queue can take now.
    pub(crate) fn new_tasks<'w>(
        &self,
        requests: impl Iterator<Item = RequestRef<'w>>,
        queues: &[WorkerQueue],
    ) -> Vec<NewTask> {
        let task = |request: RequestRef<'_>| {
            let variant_cost = |queue: &WorkerQueue| {
                let takes = queue.is_up && queue.room > 0;
                let (app, accuracy) = (request.app(), request.min_quality());
                self.models
                    .preferred(app, queue.worker, accuracy)
                    .filter(|_| takes)
            };
            self.task(pending(request, 0, RunLength::Short), queues, variant_cost)
        };
        requests.filter_map(task).take(TASKS_MAX).collect()
    }

    /// Moves queued tasks that have not begun from the queues to `tasks`; each keeps its variant.
    /// Does nothing if the window would have more than [`TASKS_MAX`] tasks.
    pub(crate) fn recall(&self, tasks: &mut Vec<NewTask>, queues: &mut [WorkerQueue]) {
        let mine = |entry: &QueueEntry| {
            let is_mine = matches!(entry.state, EntryState::Queued { mine: true, .. });
            is_mine && entry.length != RunLength::Begun
        };
        let queued = queues
            .iter()
            .flat_map(|queue| &queue.order)
            .filter(|e| mine(e))
            .count();
        if tasks.len() + queued > TASKS_MAX {
            return;
        }
        let rows: Vec<Placed> = self.window.placed().collect();
        let mut recalled: Vec<QueueEntry> = Vec::with_capacity(queued);
        for queue in queues.iter_mut() {
            queue.order.retain(|entry| {
                if mine(entry) {
                    recalled.push(*entry);
                }
                !mine(entry)
            });
        }
        for entry in recalled {
            let Some(row) = rows.iter().find(|row| row.id == entry.id) else {
                continue;
            };
            let variant_cost = |queue: &WorkerQueue| {
                let takes = queue.is_up && (queue.room > 0 || queue.worker == row.worker);
                self.models
                    .of_variant(row.app, queue.worker, row.variant)
                    .filter(|_| takes)
            };
            tasks.extend(self.task(entry, queues, variant_cost));
        }
    }

    fn task<'m>(
        &self,
        entry: QueueEntry,
        queues: &[WorkerQueue],
        variant_cost: impl Fn(&WorkerQueue) -> Option<&'m VariantCost>,
    ) -> Option<NewTask> {
        let cost = |queue: &WorkerQueue| {
            variant_cost(queue).map(|variant_cost| self.cost(variant_cost, queue))
        };
        let costs: Vec<Option<TaskCost>> = queues.iter().map(cost).collect();
        let fastest_us = costs.iter().flatten().map(|cost| cost.latency_us).min()?;
        Some(NewTask {
            entry,
            costs,
            fastest_us,
        })
    }

    fn cost(&self, variant_cost: &VariantCost, queue: &WorkerQueue) -> TaskCost {
        let is_resident = self.window.worker(queue.worker).holds(variant_cost.variant);
        let load_us = if is_resident { 0 } else { variant_cost.load_us };
        let (work_us, length) = match (variant_cost.slices.is_empty(), self.slices) {
            (true, _) => (variant_cost.latency_us, RunLength::Short),
            (false, false) => (variant_cost.latency_us, RunLength::Long),
            (false, true) => (variant_cost.sliced_us(), RunLength::Sliced),
        };
        TaskCost {
            latency_us: work_us + load_us,
            energy_uj: variant_cost.energy_uj.unwrap_or(u64::MAX),
            length,
        }
    }

    /// Inserts every task into a queue, the shortest first, the order that queues will have.
    /// Returns the reason.
    pub(crate) fn place(&self, tasks: &mut [NewTask], queues: &mut [WorkerQueue]) -> &'static str {
        if tasks.is_empty() {
            return "held-before";
        }
        tasks.sort_by_key(|task| (task.fastest_us, task.entry.id));
        match self.settings.algorithm.rule() {
            Some(rule) => {
                let (to, how) = self.evaluate(rule, tasks, queues);
                for (task, to) in tasks.iter().zip(to) {
                    task.insert(&mut queues[to], Some(rule));
                }
                how
            }
            None => {
                // Baselines place tasks in order of arrival.
                tasks.sort_by_key(|task| task.entry.id);
                for task in tasks {
                    let to = self.baseline(task, queues);
                    task.insert(&mut queues[to], None);
                }
                match self.settings.algorithm {
                    MaelAlgorithm::Availability => "shortest-queue",
                    MaelAlgorithm::Enr => "least-energy",
                    _ => "fastest-worker",
                }
            }
        }
    }

    /// The evaluation phase.
    fn evaluate(
        &self,
        rule: ScoreRule,
        tasks: &[NewTask],
        queues: &[WorkerQueue],
    ) -> (Vec<usize>, &'static str) {
        let task = |task: &NewTask| TaskTimes {
            age_us: task.entry.age_us as f64,
            slo_us: task.entry.slo_us.max(1) as f64,
        };
        let latency =
            |cost: &Option<TaskCost>| cost.map_or(f64::INFINITY, |cost| cost.latency_us as f64);
        let problem = MappingProblem {
            rule,
            wait: self.settings.wait,
            tasks: tasks.iter().map(task).collect(),
            waits: queues.iter().map(|queue| queue.wait_us() as f64).collect(),
            latencies: tasks
                .iter()
                .flat_map(|task| task.costs.iter().map(latency))
                .collect(),
        };
        let MaelSettings {
            exact_max,
            nodes_max,
            ..
        } = *self.settings;
        match search::best(&problem, exact_max, nodes_max) {
            (best, Optimality::Exact) => (best.to, "exact"),
            (best, Optimality::Improved) => (best.to, "best-found"),
        }
    }

    /// Section 3.2. Ties go to the first worker.
    fn baseline(&self, task: &NewTask, queues: &[WorkerQueue]) -> usize {
        let taking = (0..queues.len()).filter_map(|at| Some((at, task.costs[at]?)));
        let least = taking.min_by_key(|&(at, cost)| match self.settings.algorithm {
            MaelAlgorithm::Availability => {
                let running = u64::from(queues[at].busy_us > 0);
                running + queues[at].order.len() as u64
            }
            MaelAlgorithm::Enr => cost.energy_uj,
            _ => cost.latency_us,
        });
        least.map_or(0, |(at, _)| at)
    }
}

// === impl NewTask ===

impl NewTask {
    /// The selection phase: the position in the queue.
    fn insert(&self, queue: &mut WorkerQueue, rule: Option<ScoreRule>) {
        let cost = self.costs[queue.worker.index()];
        let (work_us, length) =
            cost.map_or((0, RunLength::Short), |cost| (cost.latency_us, cost.length));
        let entry = QueueEntry {
            work_us,
            length,
            ..self.entry
        };
        let place = rule.map_or(queue.order.len(), |rule| queue.best_position(rule, &entry));
        queue.order.insert(place, entry);
    }
}
