//! The window's new tasks: T of the algorithms, and where each of them goes.

use switchyard_sdk::{RequestRef, Window};

use crate::line::{Entry, Length, Line};
use crate::models::{Models, Run};
use crate::problem::{Problem, Task};
use crate::score::Rule;
use crate::search::{self, Found};
use crate::settings::{Algorithm, Settings, TASKS_MAX};
use crate::yard::pending;

/// One task, on every processor.
pub(crate) struct Fresh {
    /// Position among the window's requests.
    at: usize,
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
    /// The tasks that a line can take now, in the order in which candidates place them: the
    /// shortest first, as queues will have them.
    pub(crate) fn fresh<'w>(
        &self,
        requests: impl Iterator<Item = RequestRef<'w>>,
        lines: &[Line],
    ) -> Vec<Fresh> {
        let fresh = requests.filter_map(|request| self.task(request, lines));
        let mut fresh: Vec<Fresh> = fresh.take(TASKS_MAX).collect();
        fresh.sort_by_key(|task| (task.fastest_us, task.at));
        fresh
    }

    fn task(&self, request: RequestRef<'_>, lines: &[Line]) -> Option<Fresh> {
        let way = |line: &Line| {
            let takes = line.is_up && line.room > 0;
            let run = self
                .models
                .run(request.app(), line.worker, request.min_accuracy());
            run.filter(|_| takes).map(|run| self.way(run, line))
        };
        let ways: Vec<Option<Way>> = lines.iter().map(way).collect();
        let fastest_us = ways.iter().flatten().map(|way| way.latency_us).min()?;
        Some(Fresh {
            at: request.index(),
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

    /// Puts every task into a line; says how that was found.
    pub(crate) fn place(&self, fresh: &[Fresh], lines: &mut [Line]) -> &'static str {
        if fresh.is_empty() {
            return "";
        }
        match self.settings.algorithm.rule() {
            Some(rule) => {
                let (to, how) = self.evaluate(rule, fresh, lines);
                for (task, to) in fresh.iter().zip(to) {
                    self.insert(task, &mut lines[to], Some(rule));
                }
                how
            }
            None => {
                for task in fresh {
                    let to = self.baseline(task, lines);
                    self.insert(task, &mut lines[to], None);
                }
                match self.settings.algorithm {
                    Algorithm::Availability => "shortest queue",
                    Algorithm::Enr => "least energy",
                    _ => "fastest worker",
                }
            }
        }
    }

    /// The evaluation phase.
    fn evaluate(&self, rule: Rule, fresh: &[Fresh], lines: &[Line]) -> (Vec<usize>, &'static str) {
        let task = |task: &Fresh| {
            let request = self.window.request(task.at);
            let slo_us = request.deadline_us().saturating_sub(request.arrival_us());
            Task {
                age_us: request.age_us() as f64,
                slo_us: slo_us.max(1) as f64,
            }
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
            (best, Found::Exact) => (best.to, "best of all mappings"),
            (best, Found::Improved) => (best.to, "best mapping found"),
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

    /// The selection phase: a place in the queue. Baselines have no order but the arrivals'.
    fn insert(&self, task: &Fresh, line: &mut Line, rule: Option<Rule>) {
        let entry = task.entry(self.window, line);
        let place = rule.map_or(line.order.len(), |rule| line.best_place(rule, &entry));
        line.order.insert(place, entry);
    }
}

// === impl Fresh ===

impl Fresh {
    fn entry(&self, window: Window<'_>, line: &Line) -> Entry {
        let way = self.ways[line.worker.index()];
        let (work_us, length) = way.map_or((0, Length::Short), |way| (way.latency_us, way.length));
        pending(window.request(self.at), work_us, length)
    }
}
