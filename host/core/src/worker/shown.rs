//! The workers as windows show them. The columns are kept from window to window: only rows that changed
//! are written. With the rows before each change, an earlier window's columns can be made again.

use std::sync::Arc;

use super::Worker;
use super::facts::WorkerTimes;
use super::marks::MarkedWorkers;
use crate::ids::WorkerId;
use crate::time::Time;
use crate::window::{self, Resident};

/// The columns of the last window.
#[derive(Debug, Default)]
pub(super) struct ShownWorkers {
    columns: window::Workers,
    /// The same row by row, with the times behind the columns: comparing a row reads one place of memory.
    rows: Vec<WorkerRow>,
    /// Workers that were written to since.
    pub(super) stale: MarkedWorkers,
    /// The time of the columns.
    now: Time,
    residents: ShownResidents,
    changes: WorkerChanges,
}

/// The variants that workers hold, worker by worker; kept up to date once a window has shown them.
#[derive(Debug, Default)]
struct ShownResidents {
    list: Vec<Resident>,
    is_kept: bool,
    /// The same for windows that were kept.
    shared: Option<Arc<[Resident]>>,
}

/// The changes from one window to the next.
#[derive(Debug, Default)]
pub(crate) struct WorkerChanges {
    /// Rows before their changes, in the order of these.
    pub(crate) before: Vec<WorkerRow>,
    /// Workers whose rows or variants are others.
    workers: Vec<WorkerId>,
}

/// One worker in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerRow {
    pub(crate) worker: WorkerId,
    times: WorkerTimes,
    running_since: u64,
    running_variant: u32,
    queued: u32,
    parked: u32,
    free_memory: u64,
    up: u8,
    incarnation: u32,
}

// === impl ShownWorkers ===

impl ShownWorkers {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes the rows of the workers that changed. `moving` are those whose times move with the time.
    /// `whole`: also moves the times that have passed to `now`, for readers who do not.
    pub(super) fn show(&mut self, now: Time, workers: &[Worker], moving: &[WorkerId], whole: bool) {
        self.grow(workers);
        while let Some(id) = self.stale.pop() {
            self.update(id, &workers[id.index()], now);
        }
        let is_back = now < self.now;
        self.now = now;
        for &id in moving {
            self.set_times(id.index(), now);
            self.changes.workers.push(id);
        }
        if is_back {
            (0..self.rows.len()).for_each(|at| self.set_times(at, now));
        } else if whole {
            let columns = &mut self.columns;
            for at in columns.busy_until.iter_mut().chain(&mut columns.free_at) {
                *at = (*at).max(now.0);
            }
        }
    }

    fn grow(&mut self, workers: &[Worker]) {
        for (at, worker) in workers.iter().enumerate().skip(self.rows.len()) {
            let row = WorkerRow::of(WorkerId(at as u32), worker);
            push(&mut self.columns, &row, self.now);
            self.changes.workers.push(row.worker);
            self.rows.push(row);
        }
    }

    fn update(&mut self, id: WorkerId, worker: &Worker, now: Time) {
        let after = WorkerRow::of(id, worker);
        let before = std::mem::replace(&mut self.rows[id.index()], after);
        let mut has_changed = before != after;
        if has_changed {
            self.changes.before.push(before);
            self.put(&before, &after, now);
        }
        if self.residents.is_kept {
            has_changed |= self.residents.update(id, worker);
        }
        if has_changed {
            self.changes.workers.push(id);
        }
    }

    fn set_times(&mut self, at: usize, now: Time) {
        let times = &self.rows[at].times;
        self.columns.busy_until[at] = times.busy_until(now).0;
        self.columns.free_at[at] = times.free_at(now).0;
    }

    /// Writes a row over the one before; most columns of most rows stay.
    fn put(&mut self, before: &WorkerRow, after: &WorkerRow, now: Time) {
        let (at, columns) = (after.worker.index(), &mut self.columns);
        columns.running_since[at] = after.running_since;
        columns.running_variant[at] = after.running_variant;
        if before.queued != after.queued {
            columns.queued[at] = after.queued;
        }
        if before.parked != after.parked {
            columns.parked[at] = after.parked;
        }
        if before.free_memory != after.free_memory {
            columns.free_memory[at] = after.free_memory;
        }
        if (before.up, before.incarnation) != (after.up, after.incarnation) {
            columns.up[at] = after.up;
            columns.incarnation[at] = after.incarnation;
        }
        self.set_times(at, now);
    }

    /// Brings the variants that workers hold up to date.
    pub(super) fn show_residents(&mut self, workers: &[Worker]) {
        if !self.residents.is_kept {
            self.residents.fill(workers);
        }
    }

    /// Exchanges the columns with those of a window: the policy reads them there, and a second call takes
    /// them back.
    pub(super) fn lend(&mut self, window: &mut window::Window, residents: bool) {
        std::mem::swap(&mut self.columns, &mut window.workers);
        if residents {
            std::mem::swap(&mut self.residents.list, &mut window.residents);
        }
    }

    pub(super) fn columns(&self) -> &window::Workers {
        &self.columns
    }

    pub(super) fn residents(&self) -> &[Resident] {
        &self.residents.list
    }

    /// The residents for a window that is kept.
    pub(super) fn shared_residents(&mut self) -> Arc<[Resident]> {
        let list = &self.residents.list;
        let shared = &mut self.residents.shared;
        Arc::clone(shared.get_or_insert_with(|| Arc::from(list.as_slice())))
    }

    /// Takes the changes since the last call, and adds the workers among them to a window's.
    pub(super) fn take_changes(
        &mut self,
        before: &mut Vec<WorkerRow>,
        workers: &mut Vec<WorkerId>,
    ) {
        before.append(&mut self.changes.before);
        workers.append(&mut self.changes.workers);
        workers.sort_unstable();
        workers.dedup();
    }

    /// The rows now, and their state before the changes that no window has taken yet.
    pub(super) fn rows(&self) -> Vec<WorkerRow> {
        let mut rows = self.rows.clone();
        undo(&mut rows, &self.changes.before);
        rows
    }
}

/// Takes changes back.
pub(crate) fn undo(rows: &mut [WorkerRow], before: &[WorkerRow]) {
    for row in before.iter().rev() {
        if let Some(later) = rows.get_mut(row.worker.index()) {
            *later = *row;
        }
    }
}

/// The columns of a window at this time.
pub(crate) fn columns_of(rows: &[WorkerRow], now: Time) -> window::Workers {
    let mut columns = window::Workers::default();
    rows.iter().for_each(|row| push(&mut columns, row, now));
    columns
}

fn push(columns: &mut window::Workers, row: &WorkerRow, now: Time) {
    columns.busy_until.push(row.times.busy_until(now).0);
    columns.free_at.push(row.times.free_at(now).0);
    columns.running_since.push(row.running_since);
    columns.running_variant.push(row.running_variant);
    columns.queued.push(row.queued);
    columns.parked.push(row.parked);
    columns.free_memory.push(row.free_memory);
    columns.up.push(row.up);
    columns.incarnation.push(row.incarnation);
}

// === impl ShownResidents ===

impl ShownResidents {
    fn fill(&mut self, workers: &[Worker]) {
        self.list.clear();
        for (id, worker) in (0..).map(WorkerId).zip(workers) {
            self.list.extend(residents_of(id, worker));
        }
        (self.is_kept, self.shared) = (true, None);
    }

    /// Replaces the variants of one worker; false if they are the same.
    fn update(&mut self, id: WorkerId, worker: &Worker) -> bool {
        let from = self.list.partition_point(|known| known.worker < id);
        let known = self.list[from..].iter();
        let known = known.take_while(|known| known.worker == id).count();
        let held = &self.list[from..from + known];
        if residents_of(id, worker).eq(held.iter().copied()) {
            return false;
        }
        let variants = residents_of(id, worker);
        self.list.splice(from..from + known, variants);
        self.shared = None;
        true
    }
}

fn residents_of(id: WorkerId, worker: &Worker) -> impl Iterator<Item = Resident> {
    let held = worker.resident.iter();
    held.map(move |&variant| Resident {
        worker: id,
        variant,
    })
}

// === impl WorkerRow ===

impl WorkerRow {
    fn of(id: WorkerId, worker: &Worker) -> Self {
        // A worker with a place shows as idle: it is sent its next batch at once.
        let shown = worker.running.as_ref().filter(|_| !worker.has_place());
        Self {
            worker: id,
            times: WorkerTimes::of(worker),
            running_since: shown.map_or(0, |running| running.since.0),
            running_variant: shown.map_or(window::IDLE, |running| running.batch.variant.0),
            queued: worker.queue.len() as u32,
            parked: worker.parked,
            free_memory: worker.free_bytes,
            up: u8::from(worker.up),
            incarnation: worker.incarnation,
        }
    }
}
