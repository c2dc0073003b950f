//! The schedule with the largest sum of accuracies of answers in time, proved optimal by branch
//! and bound. Batches are whole: no stage is parked, and nothing is answered from evidence.
//!
//! A schedule is a sequence of batches in the order of their starts. Each batch begins as soon as
//! its worker is free and its requests are there, but not before the batch that precedes it in the
//! sequence. For a worker, a start, a variant with an exit and a size, one set of requests is
//! enough: of the app's requests that have arrived and would be in time, those with the earliest
//! deadlines. (A request outside the batch with an earlier deadline can change places with one in
//! it: both stay in time.) A request that would be late is worth nothing, and larger batches take
//! longer, so no batch has one.
//!
//! A branch ends when its value plus the best value of every remaining request alone cannot beat
//! the best schedule, or when a state with the same remaining requests had workers as free and at
//! least its value.

use std::collections::BTreeMap;

use switchyard_core::ids::{AppId, KindId, WorkerId};

use super::menu::{BatchMenu, BatchOption};
use super::tasks::{ArrivalTask, RunTasks, ScheduledBatch};
use crate::scenario::SimError;
use crate::workload::WorkloadError;

/// Most requests of a run: their sets are bits of a number.
const REQUESTS_MAX: usize = 64;

/// Most states: some seconds.
const STATES_MAX: u64 = 4_000_000;

/// The optimal schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExactSchedule {
    /// In the order of their starts.
    pub(super) batches: Vec<ScheduledBatch>,
    /// Sum of the accuracies of the answers in time.
    pub(super) value: f64,
}

/// Searches the schedule of one run.
struct ExactSearch<'a> {
    tasks: &'a [ArrivalTask],
    menu: &'a BatchMenu,
    /// By worker.
    kinds: &'a [KindId],
    states: u64,
    /// By set of remaining requests: when the workers are free, and the value so far.
    seen: BTreeMap<u64, Vec<(Vec<u64>, f64)>>,
    batches: Vec<ScheduledBatch>,
    best: ExactSchedule,
}

/// The optimal schedule of a run's requests on workers of these kinds.
///
/// # Errors
/// The run is too large to search.
pub(super) fn schedule(
    tasks: &RunTasks,
    menu: &BatchMenu,
    kinds: &[KindId],
) -> Result<ExactSchedule, SimError> {
    let count = tasks.list.len();
    if count > REQUESTS_MAX {
        return Err(too_large(format!(
            "the run has {count}, an exact schedule takes at most {REQUESTS_MAX}"
        )));
    }
    let mut search = ExactSearch {
        tasks: &tasks.list,
        menu,
        kinds,
        states: 0,
        seen: BTreeMap::new(),
        batches: Vec::new(),
        best: ExactSchedule::default(),
    };
    let all = (0..count).fold(0, |set, task| set | 1 << task);
    search.branch(all, &vec![0; tasks.workers], 0.0)?;
    Ok(search.best)
}

fn too_large(reason: String) -> SimError {
    let reason = format!("{reason}; simulate fewer seconds or a lower load");
    WorkloadError::value("requests", reason).into()
}

// === impl ExactSearch ===

impl ExactSearch<'_> {
    /// Searches all continuations of the batches so far.
    fn branch(&mut self, left: u64, free_us: &[u64], value: f64) -> Result<(), SimError> {
        self.states += 1;
        if self.states > STATES_MAX {
            return Err(too_large(format!(
                "{} requests have more than {STATES_MAX} schedules to compare",
                self.tasks.len()
            )));
        }
        if value > self.best.value {
            let batches = self.batches.clone();
            self.best = ExactSchedule { batches, value };
        }
        if value + self.most(left, free_us) <= self.best.value + 1e-12
            || self.is_dominated(left, free_us, value)
        {
            return Ok(());
        }
        for worker in (0..self.kinds.len() as u32).map(WorkerId) {
            if self.is_alike(worker, free_us) {
                continue;
            }
            for (app, start_us) in self.starts(left, free_us[worker.index()]) {
                let options = self.menu.of(worker, app);
                for option in options {
                    self.extend(left, free_us, value, (worker, app, start_us), option)?;
                }
            }
        }
        Ok(())
    }

    /// Branches into the batches of each size of one option at one start.
    fn extend(
        &mut self,
        left: u64,
        free_us: &[u64],
        value: f64,
        (worker, app, start_us): (WorkerId, AppId, u64),
        option: &BatchOption,
    ) -> Result<(), SimError> {
        for (at, latency_us) in option.latencies_us.iter().enumerate() {
            let size = at + 1;
            let end_us = start_us + latency_us;
            let mut fits: Vec<u32> = members(left)
                .filter(|&task| {
                    let task = &self.tasks[task as usize];
                    task.app == app && task.arrival.0 <= start_us && end_us <= task.deadline.0
                })
                .collect();
            if fits.len() < size {
                // Larger batches end later.
                return Ok(());
            }
            fits.sort_by_key(|&task| self.tasks[task as usize].deadline);
            fits.truncate(size);
            let rest = fits.iter().fold(left, |set, &task| set & !(1 << task));
            let mut free_us: Vec<u64> = free_us.iter().map(|&us| us.max(start_us)).collect();
            free_us[worker.index()] = end_us;
            self.batches.push(ScheduledBatch {
                worker,
                variant: option.variant,
                exit: option.exit,
                stages: option.stages,
                tasks: fits,
            });
            self.branch(rest, &free_us, value + option.accuracy * size as f64)?;
            self.batches.pop();
        }
        Ok(())
    }

    /// The starts to try on a worker that is free from a time on: at once, and at later arrivals.
    fn starts(&self, left: u64, free_us: u64) -> Vec<(AppId, u64)> {
        let of = |task: u32| {
            let task = &self.tasks[task as usize];
            (task.app, task.arrival.0.max(free_us))
        };
        let mut starts: Vec<(AppId, u64)> = members(left).map(of).collect();
        starts.sort_by_key(|&(app, start_us)| (start_us, app));
        starts.dedup();
        starts
    }

    /// Whether an earlier worker of the same kind is free at the same time.
    fn is_alike(&self, worker: WorkerId, free_us: &[u64]) -> bool {
        let at = worker.index();
        (0..at).any(|other| self.kinds[other] == self.kinds[at] && free_us[other] == free_us[at])
    }

    /// The sum of the best values of the remaining requests, each alone on any worker.
    fn most(&self, left: u64, free_us: &[u64]) -> f64 {
        members(left).map(|task| self.most_of(task, free_us)).sum()
    }

    fn most_of(&self, task: u32, free_us: &[u64]) -> f64 {
        let task = &self.tasks[task as usize];
        let on = |(worker, &free_us): (WorkerId, &u64)| {
            let left_us = task.deadline.0.checked_sub(task.arrival.0.max(free_us))?;
            let options = self.menu.of(worker, task.app).iter();
            let mut in_time = options.filter(|option| option.latencies_us[0] <= left_us);
            in_time.next().map(|option| option.accuracy)
        };
        let values = (0..).map(WorkerId).zip(free_us).filter_map(on);
        values.fold(0.0, f64::max)
    }

    /// Whether a state at least as good was seen; otherwise remembers this one.
    fn is_dominated(&mut self, left: u64, free_us: &[u64], value: f64) -> bool {
        let mut by_kind: Vec<(KindId, u64)> = self
            .kinds
            .iter()
            .copied()
            .zip(free_us.iter().copied())
            .collect();
        by_kind.sort();
        let free_us: Vec<u64> = by_kind.into_iter().map(|(_, us)| us).collect();
        let seen = self.seen.entry(left).or_default();
        let as_free = |one: &[u64], other: &[u64]| one.iter().zip(other).all(|(a, b)| a <= b);
        if seen
            .iter()
            .any(|(free, of)| *of >= value && as_free(free, &free_us))
        {
            return true;
        }
        seen.retain(|(free, of)| !(value >= *of && as_free(&free_us, free)));
        seen.push((free_us, value));
        false
    }
}

/// The positions in a set of requests.
fn members(set: u64) -> impl Iterator<Item = u32> + Clone {
    (0..u64::BITS).filter(move |task| set >> task & 1 == 1)
}

#[cfg(test)]
mod tests;
