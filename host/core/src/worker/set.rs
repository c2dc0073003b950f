//! All workers of a pool, and their columns in windows.
//!
//! A window shows every worker, and mostly one of them has changed since the last window: the
//! columns are kept, and brought up to date for the workers that were written to.

use std::ops::{Deref, Index, IndexMut};

use super::Worker;
use crate::catalog::WorkerSpec;
use crate::ids::WorkerId;
use crate::time::{Micros, Time};
use crate::window;

/// Workers by id. Reading is reading a slice; mutable access marks the worker as touched.
#[derive(Debug)]
pub(crate) struct WorkerSet {
    workers: Vec<Worker>,
    kept: WorkerColumns,
    /// Workers whose columns may be out of date, each once.
    touched: Vec<WorkerId>,
    is_touched: Vec<bool>,
    /// Idle ones among those that are not touched.
    idle: usize,
    /// Free ones among those that are not touched.
    free: usize,
    /// Workers that are up, and the earliest end of their queues; 0 for an idle one. None once a
    /// worker has been touched.
    frees: Option<(usize, Time)>,
}

/// The columns of [`window::Workers`], without the parts that depend on the window's time.
#[derive(Debug, Default)]
struct WorkerColumns {
    /// Expected end of the running batch, 0 without one.
    end: Vec<u64>,
    /// Expected time of the batches sent behind it.
    behind: Vec<u64>,
    /// Expected time of all waiting batches together.
    backlog: Vec<u64>,
    running_since: Vec<u64>,
    running_variant: Vec<u32>,
    queued: Vec<u32>,
    parked: Vec<u32>,
    free_memory: Vec<u64>,
    up: Vec<u8>,
    incarnation: Vec<u32>,
    idle: Vec<bool>,
    free: Vec<bool>,
}

// === impl WorkerSet ===

impl WorkerSet {
    pub(crate) fn new(specs: &[WorkerSpec]) -> Self {
        let mut made = Self {
            workers: Vec::new(),
            kept: WorkerColumns::default(),
            touched: Vec::new(),
            is_touched: Vec::new(),
            idle: 0,
            free: 0,
            frees: None,
        };
        specs.iter().for_each(|spec| made.push(Worker::new(spec)));
        made
    }

    pub(crate) fn push(&mut self, worker: Worker) {
        self.workers.push(worker);
        self.kept.grow();
        self.is_touched.push(false);
        self.touch(WorkerId(self.workers.len() as u32 - 1));
    }

    /// The ids of all workers, in the catalog's order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.workers.len() as u32).map(WorkerId)
    }

    /// All workers with their ids, in the catalog's order.
    pub(crate) fn with_ids(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        self.ids().zip(&self.workers)
    }

    pub(crate) fn get_mut(&mut self, worker: WorkerId) -> Option<&mut Worker> {
        if worker.index() < self.workers.len() {
            self.touch(worker);
        }
        self.workers.get_mut(worker.index())
    }

    /// All workers; marks each as touched.
    pub(crate) fn all_mut(&mut self) -> &mut [Worker] {
        self.ids().for_each(|worker| self.touch(worker));
        &mut self.workers
    }

    /// Whether any worker is idle.
    pub(crate) fn any_idle(&self) -> bool {
        let touched = || self.touched.iter().map(|&worker| &self[worker]);
        self.idle > 0 || touched().any(Worker::is_idle)
    }

    /// Whether any worker would be sent a batch at once.
    pub(crate) fn any_free(&self) -> bool {
        let touched = || self.touched.iter().map(|&worker| &self[worker]);
        self.free > 0 || touched().any(Worker::is_free)
    }

    /// Brings the columns up to date.
    pub(crate) fn refresh(&mut self) {
        for worker in self.touched.drain(..) {
            let at = worker.index();
            self.is_touched[at] = false;
            self.kept.set(at, &self.workers[at]);
            self.idle += usize::from(self.kept.idle[at]);
            self.free += usize::from(self.kept.free[at]);
        }
    }

    /// When the first worker that is up has no batch left; `now` if none is up.
    pub(crate) fn earliest_free(&mut self, now: Time) -> Time {
        let (up, at) = self.frees();
        match up {
            0 => now,
            _ => at.max(now),
        }
    }

    /// Workers that are up.
    pub(crate) fn up(&self) -> usize {
        match self.frees {
            Some((up, _)) => up,
            None => self.workers.iter().filter(|worker| worker.up).count(),
        }
    }

    fn frees(&mut self) -> (usize, Time) {
        if let Some(frees) = self.frees {
            return frees;
        }
        self.refresh();
        let kept = &self.kept;
        let ends = kept.end.iter().zip(&kept.backlog).zip(&kept.behind);
        let ends = ends.zip(&kept.up).filter(|(_, up)| **up != 0);
        let ends = ends.map(|(((&end, &backlog), &behind), _)| {
            end.saturating_add(behind).saturating_add(backlog)
        });
        let (up, at) = ends.fold((0, u64::MAX), |(up, at), end| (up + 1, at.min(end)));
        *self.frees.insert((up, Time(at)))
    }

    /// Batches that wait in each queue. The columns must be up to date.
    pub(crate) fn queued(&self) -> &[u32] {
        debug_assert!(self.touched.is_empty(), "a worker was written to since");
        &self.kept.queued
    }

    /// Adds every worker to a window's columns.
    pub(crate) fn show(&mut self, now: Time, columns: &mut window::Workers) {
        self.refresh();
        let kept = &self.kept;
        columns
            .busy_until
            .extend(kept.end.iter().map(|&end| end.max(now.0)));
        for (busy_until, &behind) in columns.busy_until.iter_mut().zip(&kept.behind) {
            *busy_until = (Time(*busy_until) + Micros(behind)).0;
        }
        columns.free_at.extend_from_slice(&columns.busy_until);
        // Most backlogs are 0.
        for (free_at, &backlog) in columns.free_at.iter_mut().zip(&kept.backlog) {
            if backlog > 0 {
                *free_at = (Time(*free_at) + Micros(backlog)).0;
            }
        }
        columns.running_since.extend_from_slice(&kept.running_since);
        columns
            .running_variant
            .extend_from_slice(&kept.running_variant);
        columns.queued.extend_from_slice(&kept.queued);
        columns.parked.extend_from_slice(&kept.parked);
        columns.free_memory.extend_from_slice(&kept.free_memory);
        columns.up.extend_from_slice(&kept.up);
        columns.incarnation.extend_from_slice(&kept.incarnation);
    }

    fn touch(&mut self, worker: WorkerId) {
        let at = worker.index();
        self.frees = None;
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(worker);
            self.idle -= usize::from(self.kept.idle[at]);
            self.free -= usize::from(self.kept.free[at]);
        }
    }
}

impl Deref for WorkerSet {
    type Target = [Worker];

    fn deref(&self) -> &[Worker] {
        &self.workers
    }
}

impl Index<WorkerId> for WorkerSet {
    type Output = Worker;

    fn index(&self, worker: WorkerId) -> &Worker {
        &self.workers[worker.index()]
    }
}

impl IndexMut<WorkerId> for WorkerSet {
    fn index_mut(&mut self, worker: WorkerId) -> &mut Worker {
        self.touch(worker);
        &mut self.workers[worker.index()]
    }
}

// === impl WorkerColumns ===

impl WorkerColumns {
    /// Adds a row for one more worker, which counts as neither idle nor free until [`set`](Self::set).
    fn grow(&mut self) {
        let Self {
            end,
            behind,
            backlog,
            running_since,
            running_variant,
            queued,
            parked,
            free_memory,
            up,
            incarnation,
            idle,
            free,
        } = self;
        for column in [end, behind, backlog, running_since, free_memory] {
            column.push(0);
        }
        for column in [running_variant, queued, parked, incarnation] {
            column.push(0);
        }
        up.push(0);
        idle.push(false);
        free.push(false);
    }

    fn set(&mut self, at: usize, worker: &Worker) {
        // A worker with a place shows as idle: it is sent its next batch at once.
        let shown = worker.running.as_ref().filter(|_| !worker.has_place());
        let running = worker.running.as_ref();
        let expected = worker.waiting().map(|batch| batch.expected);
        self.end[at] = running.map_or(0, |running| running.expected_end.0);
        self.backlog[at] = expected.fold(Micros::ZERO, |sum, time| sum + time).0;
        self.behind[at] = worker.behind().0;
        self.running_since[at] = shown.map_or(0, |running| running.since.0);
        self.running_variant[at] = shown.map_or(window::IDLE, |running| running.batch.variant.0);
        self.queued[at] = worker.queue.len() as u32;
        self.parked[at] = worker.parked;
        self.free_memory[at] = worker.free_bytes;
        self.up[at] = u8::from(worker.up);
        self.incarnation[at] = worker.incarnation;
        self.idle[at] = worker.is_idle();
        self.free[at] = worker.is_free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::KindId;

    fn spec(w: u64) -> WorkerSpec {
        WorkerSpec {
            name: format!("w{w}"),
            kind: KindId(0),
            memory_bytes: 100 * w,
            queue_max: 2,
            parked_max: 0,
            can: crate::catalog::Capabilities::ALL,
            transfer: Micros::ZERO,
            outstanding: 1,
        }
    }

    fn shown(set: &mut WorkerSet) -> window::Workers {
        let mut columns = window::Workers::default();
        set.show(Time(7), &mut columns);
        columns
    }

    #[test]
    fn the_columns_show_every_write() {
        let mut set = WorkerSet::new(&[spec(1), spec(2), spec(3)]);
        assert!(set.any_idle(), "before the first refresh");
        let columns = shown(&mut set);
        assert_eq!(columns.free_memory, [100, 200, 300]);
        assert_eq!(columns.busy_until, [7; 3]);
        set[WorkerId(1)].parked = 5;
        set[WorkerId(1)].up = false;
        set.push(Worker::new(&spec(4)));
        let columns = shown(&mut set);
        assert_eq!(columns.parked, [0, 5, 0, 0]);
        assert_eq!(columns.up, [1, 0, 1, 1]);
        assert_eq!(columns.free_memory, [100, 200, 300, 400]);
    }

    #[test]
    fn idle_workers_are_counted_before_and_after_a_refresh() {
        let mut set = WorkerSet::new(&[spec(1), spec(2)]);
        for (worker, up, any) in [
            (0, false, true),
            (1, false, false),
            (1, false, false),
            (0, true, true),
            (0, false, false),
        ] {
            set[WorkerId(worker)].up = up;
            assert_eq!(set.any_idle(), any);
            set.refresh();
            assert_eq!(set.any_idle(), any);
        }
        set.all_mut().iter_mut().for_each(|worker| worker.up = true);
        assert!(set.any_idle());
    }
}
