//! Groups of requests that get the same model (sections 5.2 and 5.3.2).

use std::cmp::Reverse;
use std::ops::Range;

use switchyard_sdk::AppId;
use switchyard_sdk::priority::mean;

use crate::job::Job;
use crate::model::AppModels;

/// Requests of one app and one likely label, in the order in which they run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) app: AppId,
    pub(crate) label: Option<u32>,
    /// Indices of its jobs, highest priority first.
    pub(crate) jobs: Range<usize>,
    /// Candidates, as bits. The SneakPeek model only if the evidence of all jobs is ready.
    pub(crate) models: u64,
    /// Eq. 14.
    pub(crate) priority: f64,
    /// The earliest deadline of its jobs, on the host's clock.
    pub(crate) first_deadline_us: u64,
    /// Start of its sums of accuracies in [`Groups::sums`], one per candidate.
    pub(crate) sums: usize,
}

/// The groups of a window. Buffers are kept between windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    pub(crate) list: Vec<Group>,
    pub(crate) sums: Vec<f64>,
}

// === impl Groups ===

impl Groups {
    /// Sorts and partitions `jobs`. Groups are cut at `group_max`, and halved, the largest first,
    /// while there are fewer than `workers` (section 8: a large group unbalances the workers).
    pub(crate) fn fill(
        &mut self,
        jobs: &mut [Job],
        accuracies: &[f64],
        apps: &[AppModels],
        workers: usize,
    ) {
        self.list.clear();
        self.sums.clear();
        jobs.sort_by(|a, b| {
            let together = (a.app, a.label, a.models).cmp(&(b.app, b.label, b.models));
            together
                .then(b.priority.total_cmp(&a.priority))
                .then(a.id.cmp(&b.id))
        });
        let mut ranges = cut(jobs, apps);
        while ranges.len() < workers {
            let Some(at) = largest(&ranges) else { break };
            let Range { start, end } = ranges[at];
            // The first half, of higher priority, gets the odd job.
            let middle = start + (end - start).div_ceil(2);
            ranges[at] = start..middle;
            ranges.insert(at + 1, middle..end);
        }
        for range in ranges {
            self.push(range, jobs, accuracies, apps);
        }
    }

    fn push(&mut self, range: Range<usize>, jobs: &[Job], accuracies: &[f64], apps: &[AppModels]) {
        let members = &jobs[range.clone()];
        let first = &members[0];
        let app = &apps[first.app.index()];
        let sums = self.sums.len();
        for model in 0..app.models.len() {
            let each = members.iter().map(|job| accuracies[job.accuracies + model]);
            self.sums.push(each.sum());
        }
        let mut models = first.models;
        let all_ready = members.iter().all(|job| job.has_evidence);
        if let Some(sneakpeek) = app.sneakpeek().filter(|_| !all_ready) {
            models &= !(1 << sneakpeek);
        }
        let deadlines = members
            .iter()
            .map(|job| job.arrival_us.saturating_add(job.due_us));
        self.list.push(Group {
            app: first.app,
            label: first.label,
            models,
            priority: mean(members.iter().map(|job| job.priority)),
            first_deadline_us: deadlines.min().unwrap_or(0),
            sums,
            jobs: range,
        });
    }
}

/// Ranges of sorted jobs of one group each, at most `group_max` long.
fn cut(jobs: &[Job], apps: &[AppModels]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let joins = ranges.last().is_some_and(|range| {
            let other = &jobs[range.start];
            (other.app, other.label, other.models) == (job.app, job.label, job.models)
                && range.len() < apps[job.app.index()].group_max
        });
        match ranges.last_mut() {
            Some(range) if joins => range.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// The first of the longest ranges, if it can be halved.
fn largest(ranges: &[Range<usize>]) -> Option<usize> {
    let at = (0..ranges.len()).min_by_key(|&at| Reverse(ranges[at].len()))?;
    (ranges[at].len() > 1).then_some(at)
}
