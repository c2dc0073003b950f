//! Fewer groups than labels: groups of one app as one, where the split costs more batches than it
//! gains accuracy, or leaves more groups than the exact search takes.

use switchyard_sdk::AppId;

use crate::group::Groups;
use crate::job::Job;
use crate::problem::{Schedule, SchedulingProblem};

/// Another partition of a window's jobs, with copies of them in its order.
#[derive(Debug)]
pub(crate) struct Partition {
    jobs: Vec<Job>,
    groups: Groups,
}

/// The partitions to try: groups that have the same model in the schedule as one, and all groups of
/// an app as one. Without any that differ from the problem's.
pub(crate) fn partitions(
    problem: &SchedulingProblem<'_>,
    schedule: &Schedule,
    workers: usize,
) -> Vec<Partition> {
    let apps: Vec<AppId> = problem.groups.iter().map(|group| group.app).collect();
    let labels = problem.groups.iter().map(|group| group.label);
    if labels.flatten().next().is_none() {
        return Vec::new();
    }
    let mut models = vec![None; apps.len()];
    for choice in &schedule.choices {
        models[choice.group] = Some(choice.model);
    }
    let by_model = Partition::new(problem, workers, |group| {
        let alike = |other: &usize| apps[*other] == apps[group] && models[*other] == models[group];
        (0..apps.len()).find(alike)
    });
    let whole = Partition::new(problem, workers, |_| None);
    let fewer = |partition: &Partition| partition.groups.list.len() < apps.len();
    [by_model, whole].into_iter().filter(fewer).collect()
}

// === impl Partition ===

impl Partition {
    /// Jobs of groups of one app for which `merged` names the same group are together; with none,
    /// they have no label.
    fn new(
        problem: &SchedulingProblem<'_>,
        workers: usize,
        merged: impl Fn(usize) -> Option<usize>,
    ) -> Self {
        let mut jobs = problem.jobs.to_vec();
        for (at, group) in problem.groups.iter().enumerate() {
            let label = merged(at).and_then(|other| problem.groups[other].label);
            for job in &mut jobs[group.jobs.clone()] {
                job.label = label;
            }
        }
        let mut groups = Groups::default();
        groups.fill(&mut jobs, problem.accuracies, problem.apps, workers);
        Self { jobs, groups }
    }

    /// The same problem with this partition.
    pub(crate) fn problem<'a>(&'a self, of: SchedulingProblem<'a>) -> SchedulingProblem<'a> {
        SchedulingProblem {
            jobs: &self.jobs,
            groups: &self.groups.list,
            sums: &self.groups.sums,
            ..of
        }
    }
}
