//! The window's new tasks: T of the algorithms, and where each of them goes.

use switchyard_sdk::window::Placed;
use switchyard_sdk::{RequestRef, Window};

use crate::line::{Entry, Length, Line, Place};
use crate::models::{Models, Run};
use crate::problem::{Problem, Task};
use crate::score::Rule;
use crate::search::{self, Found};
use crate::settings::{Algorithm, Settings, TASKS_MAX};
use crate::yard::pending;

/// One task, on every processor.
pub(crate) struct Fresh {
    /// As it will stand in a line, but for its work.
    entry: Entry,
    /// Per line; none where it cannot run now.
    ways: Vec<Option<Way>>,
    /// The least of its latencies.
    fastest_us: u64,
}

/// A task on one processor.
#[derive(Clone, Copy)]
struct Way {
    latency_us: u64,
    energy_uj: u64,
    length: Length,
}

/// What is looked at to place tasks.
pub(crate) struct Placer<'a> {
    pub(crate) window: Window<'a>,
    pub(crate) models: &'a Models,
    pub(crate) settings: &'a Settings,
    /// SliceMode as this window found it.
    pub(crate) slices: bool,
}

// === impl Placer ===

impl Placer<'_> {
    /// The tasks that a line can take now.
    pub(crate) fn fresh<'w>(
        &self,
        requests: impl Iterator<Item = RequestRef<'w>>,
        lines: &[Line],
    ) -> Vec<Fresh> {
        let task = |request: RequestRef<'_>| {
            let run = |line: &Line| {
                let takes = line.is_up && line.room > 0;
                let (app, accuracy) = (request.app(), request.min_accuracy());
                self.models
                    .run(app, line.worker, accuracy)
                    .filter(|_| takes)
            };
            self.task(pending(request, 0, Length::Short), lines, run)
        };
        requests.filter_map(task).take(TASKS_MAX).collect()
    }

    /// Takes what waits in queues, and has not begun, out of the lines to be placed again. A
    /// request keeps its variant. Too many tasks for one window stay where they are.
    pub(crate) fn recall(&self, fresh: &mut Vec<Fresh>, lines: &mut [Line]) {
        let mine = |entry: &Entry| {
            let is_mine = matches!(entry.place, Place::Queued { mine: true, .. });
            is_mine && entry.length != Length::Begun
        };
        let queued = lines
            .iter()
            .flat_map(|line| &line.order)
            .filter(|e| mine(e))
            .count();
        if fresh.len() + queued > TASKS_MAX {
            return;
        }
        let rows: Vec<Placed> = self.window.placed().collect();
        let mut recalled: Vec<Entry> = Vec::with_capacity(queued);
        for line in lines.iter_mut() {
            line.order.retain(|entry| {
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
            let run = |line: &Line| {
                let takes = line.is_up && (line.room > 0 || line.worker == row.worker);
                self.models
                    .run_of(row.app, line.worker, row.variant)
                    .filter(|_| takes)
            };
            fresh.extend(self.task(entry, lines, run));
        }
    }

    fn task<'m>(
        &self,
        entry: Entry,
        lines: &[Line],
        run: impl Fn(&Line) -> Option<&'m Run>,
    ) -> Option<Fresh> {
        let way = |line: &Line| run(line).map(|run| self.way(run, line));
        let ways: Vec<Option<Way>> = lines.iter().map(way).collect();
        let fastest_us = ways.iter().flatten().map(|way| way.latency_us).min()?;
        Some(Fresh {
            entry,
            ways,
            fastest_us,
        })
    }

    fn way(&self, run: &Run, line: &Line) -> Way {
        let is_resident = self.window.worker(line.worker).holds(run.variant);
        let load_us = if is_resident { 0 } else { run.load_us };
        let (run_us, length) = match (run.slices.is_empty(), self.slices) {
            (true, _) => (run.latency_us, Length::Short),
            (false, false) => (run.latency_us, Length::Long),
            (false, true) => (run.sliced_us(), Length::Sliced),
        };
        Way {
            latency_us: run_us + load_us,
            energy_uj: run.energy_uj.unwrap_or(u64::MAX),
            length,
        }
    }

    /// Puts every task into a line, the shortest first, as queues will have them; says how that
    /// was found.
    pub(crate) fn place(&self, fresh: &mut [Fresh], lines: &mut [Line]) -> &'static str {
        if fresh.is_empty() {
            return "held-before";
        }
        fresh.sort_by_key(|task| (task.fastest_us, task.entry.id));
        match self.settings.algorithm.rule() {
            Some(rule) => {
                let (to, how) = self.evaluate(rule, fresh, lines);
                for (task, to) in fresh.iter().zip(to) {
                    task.insert(&mut lines[to], Some(rule));
                }
                how
            }
            None => {
                // Baselines know no order but the arrivals'.
                fresh.sort_by_key(|task| task.entry.id);
                for task in fresh {
                    let to = self.baseline(task, lines);
                    task.insert(&mut lines[to], None);
                }
                match self.settings.algorithm {
                    Algorithm::Availability => "shortest-queue",
                    Algorithm::Enr => "least-energy",
                    _ => "fastest-worker",
                }
            }
        }
    }

    /// The evaluation phase.
    fn evaluate(&self, rule: Rule, fresh: &[Fresh], lines: &[Line]) -> (Vec<usize>, &'static str) {
        let task = |task: &Fresh| Task {
            age_us: task.entry.age_us as f64,
            slo_us: task.entry.slo_us.max(1) as f64,
        };
        let latency = |way: &Option<Way>| way.map_or(f64::INFINITY, |way| way.latency_us as f64);
        let problem = Problem {
            rule,
            tasks: fresh.iter().map(task).collect(),
            waits: lines.iter().map(|line| line.wait_us() as f64).collect(),
            latencies: fresh
                .iter()
                .flat_map(|task| task.ways.iter().map(latency))
                .collect(),
        };
        let Settings {
            exact_max,
            nodes_max,
            ..
        } = *self.settings;
        match search::best(&problem, exact_max, nodes_max) {
            (best, Found::Exact) => (best.to, "exact"),
            (best, Found::Improved) => (best.to, "best-found"),
        }
    }

    /// Section 3.2. Ties go to the first worker.
    fn baseline(&self, task: &Fresh, lines: &[Line]) -> usize {
        let taking = (0..lines.len()).filter_map(|at| Some((at, task.ways[at]?)));
        let least = taking.min_by_key(|&(at, way)| match self.settings.algorithm {
            Algorithm::Availability => {
                let running = u64::from(lines[at].busy_us > 0);
                running + lines[at].order.len() as u64
            }
            Algorithm::Enr => way.energy_uj,
            _ => way.latency_us,
        });
        least.map_or(0, |(at, _)| at)
    }
}

// === impl Fresh ===

impl Fresh {
    /// The selection phase: a place in the queue.
    fn insert(&self, line: &mut Line, rule: Option<Rule>) {
        let way = self.ways[line.worker.index()];
        let (work_us, length) = way.map_or((0, Length::Short), |way| (way.latency_us, way.length));
        let entry = Entry {
            work_us,
            length,
            ..self.entry
        };
        let place = rule.map_or(line.order.len(), |rule| line.best_place(rule, &entry));
        line.order.insert(place, entry);
    }
}
