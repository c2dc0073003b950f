//! The groups of a window, and the utility of placing a group on a worker (eq. 2 and 3).

use std::ops::Range;

use switchyard_sdk::utility::utility;

use crate::group::Group;
use crate::job::Job;
use crate::model::AppModels;
use crate::timeline::WorkerTimeline;

/// One window's groups.
#[derive(Clone, Copy)]
pub(crate) struct SchedulingProblem<'a> {
    pub(crate) now_us: u64,
    pub(crate) apps: &'a [AppModels],
    pub(crate) jobs: &'a [Job],
    pub(crate) accuracies: &'a [f64],
    pub(crate) groups: &'a [Group],
    pub(crate) sums: &'a [f64],
    pub(crate) charge_swap: bool,
    /// Adjacent groups of one request with the same model run as one batch.
    pub(crate) joins: bool,
    /// Price of a microsecond of a worker's time, in utility; see `price`.
    pub(crate) price: f64,
}

/// A group with its model and worker. Assignments are in the order in which the groups run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) group: usize,
    pub(crate) model: usize,
    /// Index of the timeline; none if the group is answered from evidence.
    pub(crate) timeline: Option<usize>,
}

/// A schedule of all groups with its expected sum of utilities.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) choices: Vec<Assignment>,
    pub(crate) utility: f64,
}

// === impl SchedulingProblem ===

impl SchedulingProblem<'_> {
    /// Sum of utilities, less the price of its time, of a group that runs next on a timeline, and
    /// the timeline afterwards. None if the model is no candidate of the group or cannot run there.
    pub(crate) fn place(
        &self,
        group: usize,
        model: usize,
        timeline: &WorkerTimeline,
    ) -> Option<(f64, WorkerTimeline)> {
        let found = &self.groups[group];
        let candidate = &self.apps[found.app.index()].models[model];
        let (variant, _) = candidate.run?;
        if found.models & (1 << model) == 0 {
            return None;
        }
        let cost = timeline.cost(candidate)?;
        let mut after = *timeline;
        let load_us = if self.charge_swap { cost.load_us } else { 0 };
        after.load(variant, candidate.memory_bytes, load_us);
        let utility = self.run(found, model, &cost.latencies_us, &mut after.free_us);
        let taken_us = after.free_us.saturating_sub(timeline.free_us);
        Some((utility - self.price * taken_us as f64, after))
    }

    /// Sum of utilities of a group answered from evidence now; none if it cannot be.
    pub(crate) fn answer(&self, group: usize) -> Option<f64> {
        let found = &self.groups[group];
        let sneakpeek = self.sneakpeek(group)?;
        Some(self.worth(found, &found.jobs, sneakpeek, self.now_us))
    }

    /// Index of the SneakPeek model, if it can answer the whole group.
    pub(crate) fn sneakpeek(&self, group: usize) -> Option<usize> {
        let found = &self.groups[group];
        let sneakpeek = self.apps[found.app.index()].sneakpeek()?;
        (found.models & (1 << sneakpeek) != 0).then_some(sneakpeek)
    }

    /// The batches of a group; all but the last have `batch_max` jobs.
    pub(crate) fn batches(
        &self,
        group: usize,
        batch_max: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let Range { start, end } = self.groups[group].jobs;
        (start..end)
            .step_by(batch_max)
            .map(move |from| from..end.min(from + batch_max))
    }

    /// Moves `free_us` past the group's batches and returns the sum of their utilities.
    fn run(&self, group: &Group, model: usize, latencies_us: &[u64], free_us: &mut u64) -> f64 {
        let batch_max = latencies_us.len();
        let (full, rest) = (group.jobs.len() / batch_max, group.jobs.len() % batch_max);
        let last_us = if rest == 0 { 0 } else { latencies_us[rest - 1] };
        let whole_us = latencies_us[batch_max - 1].saturating_mul(full as u64);
        let start_us = *free_us;
        *free_us = start_us.saturating_add(whole_us.saturating_add(last_us));
        if *free_us <= group.first_deadline_us {
            return self.sums[group.sums + model];
        }
        let (mut end_us, mut sum) = (start_us, 0.0);
        let mut from = group.jobs.start;
        while from < group.jobs.end {
            let to = group.jobs.end.min(from + batch_max);
            end_us = end_us.saturating_add(latencies_us[to - from - 1]);
            sum += self.worth(group, &(from..to), model, end_us);
            from = to;
        }
        sum
    }

    /// Sum of utilities of jobs of a group that are answered at `end_us` (eq. 2).
    fn worth(&self, group: &Group, jobs: &Range<usize>, model: usize, end_us: u64) -> f64 {
        if end_us <= group.first_deadline_us && *jobs == group.jobs {
            return self.sums[group.sums + model];
        }
        let penalty = self.apps[group.app.index()].penalty;
        let jobs = self.jobs[jobs.clone()].iter().map(|job| {
            let accuracy = self.accuracies[job.accuracies + model];
            let taken_us = end_us.saturating_sub(job.arrival_us);
            utility(penalty, accuracy, job.due_us, taken_us)
        });
        jobs.sum()
    }
}
