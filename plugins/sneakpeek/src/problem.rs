//! What there is to schedule, and what placing a group is worth (eq. 2 and 3).

use std::ops::Range;

use switchyard_sdk::utility::utility;

use crate::group::Group;
use crate::job::Job;
use crate::line::Line;
use crate::model::AppModels;

/// One window's groups.
#[derive(Clone, Copy)]
pub(crate) struct Problem<'a> {
    pub(crate) now_us: u64,
    pub(crate) apps: &'a [AppModels],
    pub(crate) jobs: &'a [Job],
    pub(crate) accuracies: &'a [f64],
    pub(crate) groups: &'a [Group],
    pub(crate) sums: &'a [f64],
    pub(crate) charge_swap: bool,
    /// Utility of a microsecond of a worker to those who are yet to come.
    pub(crate) price: f64,
}

/// A group with its model, and the line it is on. Choices are made in the order in which
/// their groups run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) group: usize,
    pub(crate) model: usize,
    /// Position among the lines; none when the group is answered from evidence.
    pub(crate) line: Option<usize>,
}

/// A schedule of all groups and the sum of utilities expected of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) choices: Vec<Choice>,
    pub(crate) utility: f64,
}

// === impl Problem ===

impl Problem<'_> {
    /// Sum of utilities of a group that runs next on a line with one of its models, less the
    /// price of its time, and the line afterwards. None where the model is no candidate or cannot run there.
    pub(crate) fn place(&self, group: usize, model: usize, line: &Line) -> Option<(f64, Line)> {
        let found = &self.groups[group];
        let candidate = &self.apps[found.app].models[model];
        let (variant, _) = candidate.run?;
        if found.models & (1 << model) == 0 {
            return None;
        }
        let cost = line.cost(candidate)?;
        let mut after = *line;
        let load_us = if self.charge_swap { cost.load_us } else { 0 };
        after.load(variant, candidate.memory_bytes, load_us);
        let utility = self.run(found, model, &cost.latencies_us, &mut after.free_us);
        let taken_us = after.free_us.saturating_sub(line.free_us);
        Some((utility - self.price * taken_us as f64, after))
    }

    /// Sum of utilities of a group answered from evidence now; none where it cannot be.
    pub(crate) fn answer(&self, group: usize) -> Option<f64> {
        let found = &self.groups[group];
        let sneakpeek = self.sneakpeek(group)?;
        Some(self.worth(found, &found.jobs, sneakpeek, self.now_us))
    }

    /// The SneakPeek model's position, where the whole group can be answered with it.
    pub(crate) fn sneakpeek(&self, group: usize) -> Option<usize> {
        let found = &self.groups[group];
        let sneakpeek = self.apps[found.app].sneakpeek()?;
        (found.models & (1 << sneakpeek) != 0).then_some(sneakpeek)
    }

    /// The batches of a group: all but the last are as large as the model takes.
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

    /// Moves `free_us` past the group's batches and sums up their utilities.
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

    /// Sum of utilities of some of a group's jobs, answered at one time (eq. 2).
    fn worth(&self, group: &Group, jobs: &Range<usize>, model: usize, end_us: u64) -> f64 {
        if end_us <= group.first_deadline_us && *jobs == group.jobs {
            return self.sums[group.sums + model];
        }
        let penalty = self.apps[group.app].penalty;
        let jobs = self.jobs[jobs.clone()].iter().map(|job| {
            let accuracy = self.accuracies[job.accuracies + model];
            let taken_us = end_us.saturating_sub(job.arrival_us);
            utility(penalty, accuracy, job.due_us, taken_us)
        });
        jobs.sum()
    }
}
