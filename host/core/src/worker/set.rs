//! All workers of a pool, and what windows show of them.
//!
//! A window shows every worker, and mostly one of them has changed since the last one: the
//! columns are kept and brought up to date for those that somebody has touched.

use std::ops::{Deref, Index, IndexMut};

use super::Worker;
use crate::catalog::WorkerSpec;
use crate::time::{Micros, Time};
use crate::window;

/// Workers by id. Reading is reading a slice; whoever writes to one has touched it.
#[derive(Debug)]
pub(crate) struct WorkerSet {
    workers: Vec<Worker>,
    kept: Columns,
    /// Workers whose columns may be out of date, each once.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    /// Idle ones among those that are not touched.
    idle: usize,
}

/// What windows show, but for the time.
#[derive(Debug, Default)]
struct Columns {
    /// Expected end of what runs, 0 where nothing does.
    end: Vec<u64>,
    /// Expected run time of all that is queued.
    backlog: Vec<u64>,
    running_since: Vec<u64>,
    running_variant: Vec<u32>,
    queued: Vec<u32>,
    parked: Vec<u32>,
    free_memory: Vec<u64>,
    up: Vec<u8>,
    idle: Vec<bool>,
}

// === impl WorkerSet ===

impl WorkerSet {
    pub(crate) fn new(specs: &[WorkerSpec]) -> Self {
        let mut made = Self {
            workers: Vec::new(),
            kept: Columns::default(),
            touched: Vec::new(),
            is_touched: Vec::new(),
            idle: 0,
        };
        specs.iter().for_each(|spec| made.push(Worker::new(spec)));
        made
    }

    pub(crate) fn push(&mut self, worker: Worker) {
        self.workers.push(worker);
        self.kept.grow();
        self.is_touched.push(false);
        self.touch(self.workers.len() - 1);
    }

    pub(crate) fn get_mut(&mut self, w: usize) -> Option<&mut Worker> {
        if w < self.workers.len() {
            self.touch(w);
        }
        self.workers.get_mut(w)
    }

    /// Everybody, to be written to.
    pub(crate) fn all_mut(&mut self) -> &mut [Worker] {
        (0..self.workers.len()).for_each(|w| self.touch(w));
        &mut self.workers
    }

    /// Whether any worker is idle.
    pub(crate) fn any_idle(&self) -> bool {
        let touched = || self.touched.iter().map(|&w| &self.workers[w]);
        self.idle > 0 || touched().any(Worker::is_idle)
    }

    /// Brings the columns up to date.
    pub(crate) fn refresh(&mut self) {
        for w in self.touched.drain(..) {
            self.is_touched[w] = false;
            self.kept.set(w, &self.workers[w]);
            self.idle += usize::from(self.kept.idle[w]);
        }
    }

    /// Batches that wait in each queue, when last brought up to date.
    pub(crate) fn queued(&self) -> &[u32] {
        debug_assert!(self.touched.is_empty(), "somebody wrote to a worker since");
        &self.kept.queued
    }

    /// Adds every worker to a window's columns.
    pub(crate) fn see(&mut self, now: Time, columns: &mut window::Workers) {
        self.refresh();
        let kept = &self.kept;
        columns
            .busy_until
            .extend(kept.end.iter().map(|&end| end.max(now.0)));
        columns.free_at.extend_from_slice(&columns.busy_until);
        // Mostly nothing waits.
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
    }

    fn touch(&mut self, w: usize) {
        if !self.is_touched[w] {
            self.is_touched[w] = true;
            self.touched.push(w);
            self.idle -= usize::from(self.kept.idle[w]);
        }
    }
}

impl Deref for WorkerSet {
    type Target = [Worker];

    fn deref(&self) -> &[Worker] {
        &self.workers
    }
}

impl Index<usize> for WorkerSet {
    type Output = Worker;

    fn index(&self, w: usize) -> &Worker {
        &self.workers[w]
    }
}

impl IndexMut<usize> for WorkerSet {
    fn index_mut(&mut self, w: usize) -> &mut Worker {
        self.touch(w);
        &mut self.workers[w]
    }
}

// === impl Columns ===

impl Columns {
    /// Room for one more worker, which is not idle until it is looked at.
    fn grow(&mut self) {
        let Self {
            end,
            backlog,
            running_since,
            running_variant,
            queued,
            parked,
            free_memory,
            up,
            idle,
        } = self;
        for column in [end, backlog, running_since, free_memory] {
            column.push(0);
        }
        for column in [running_variant, queued, parked] {
            column.push(0);
        }
        up.push(0);
        idle.push(false);
    }

    fn set(&mut self, w: usize, worker: &Worker) {
        let running = worker.running.as_ref();
        let expected = worker.queue.iter().map(|batch| batch.expected);
        self.end[w] = running.map_or(0, |running| running.expected_end.0);
        self.backlog[w] = expected.fold(Micros::ZERO, |sum, time| sum + time).0;
        self.running_since[w] = running.map_or(0, |running| running.since.0);
        self.running_variant[w] = running.map_or(window::IDLE, |running| running.batch.variant.0);
        self.queued[w] = worker.queue.len() as u32;
        self.parked[w] = worker.parked;
        self.free_memory[w] = worker.free_bytes;
        self.up[w] = u8::from(worker.up);
        self.idle[w] = worker.is_idle();
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
        }
    }

    fn shown(set: &mut WorkerSet) -> window::Workers {
        let mut columns = window::Workers::default();
        set.see(Time(7), &mut columns);
        columns
    }

    #[test]
    fn what_was_written_is_what_is_shown() {
        let mut set = WorkerSet::new(&[spec(1), spec(2), spec(3)]);
        assert!(set.any_idle(), "before anybody looked");
        let columns = shown(&mut set);
        assert_eq!(columns.free_memory, [100, 200, 300]);
        assert_eq!(columns.busy_until, [7; 3]);
        set[1].parked = 5;
        set[1].up = false;
        set.push(Worker::new(&spec(4)));
        let columns = shown(&mut set);
        assert_eq!(columns.parked, [0, 5, 0, 0]);
        assert_eq!(columns.up, [1, 0, 1, 1]);
        assert_eq!(columns.free_memory, [100, 200, 300, 400]);
    }

    #[test]
    fn idle_workers_are_counted_whoever_looks_when() {
        let mut set = WorkerSet::new(&[spec(1), spec(2)]);
        for (w, up, any) in [
            (0, false, true),
            (1, false, false),
            (1, false, false),
            (0, true, true),
            (0, false, false),
        ] {
            set[w].up = up;
            assert_eq!(set.any_idle(), any);
            set.refresh();
            assert_eq!(set.any_idle(), any);
        }
        set.all_mut().iter_mut().for_each(|worker| worker.up = true);
        assert!(set.any_idle());
    }
}
