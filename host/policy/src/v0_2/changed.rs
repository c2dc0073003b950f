//! The workers that changed since an instance's last window, for policies that keep the others
//! themselves (`changed-workers`).
//!
//! Each instance has its own last window, whatever policy decided those between: shadows, canaries,
//! replays and trials as well. A window is compared with the state that this very instance holds, so
//! that its state with the rows put in equals the window. If that state is the scheduler's window before, its
//! list of changes is taken instead.

use std::ops::Range;

use switchyard_core::ids::WorkerId;
use switchyard_core::time::Time;
use switchyard_core::window::{Resident, Window, Workers};

/// Workers whose marks share a word. Mostly they are compared as one piece of memory.
const GROUP: usize = u64::BITS as usize;

/// The workers as an instance holds them, and the rows that it lacks.
#[derive(Default)]
pub(super) struct ChangedWorkers {
    /// The instance has answered the last window that it was sent, and holds `held`.
    is_held: bool,
    /// The time of that window.
    now: Time,
    /// Its number, if it came from the scheduler that said which workers had changed.
    number: Option<u64>,
    /// Each row as it was sent.
    held: Workers,
    residents: Vec<Resident>,
    marks: Marks,
    rows: WorkerRows,
}

/// Rows of some workers, in the contract's columns.
#[derive(Default)]
pub(super) struct WorkerRows {
    pub(super) index: Vec<u32>,
    pub(super) busy_until: Vec<u64>,
    pub(super) free_at: Vec<u64>,
    pub(super) running_since: Vec<u64>,
    pub(super) running_variant: Vec<u32>,
    pub(super) queued: Vec<u32>,
    pub(super) parked: Vec<u32>,
    pub(super) free_memory: Vec<u64>,
    pub(super) up: Vec<u32>,
}

/// A bit per worker.
#[derive(Default)]
struct Marks {
    words: Vec<u64>,
}

// === impl ChangedWorkers ===

impl ChangedWorkers {
    /// The instance holds nothing: its next window shows every worker.
    pub(super) fn forget(&mut self) {
        self.is_held = false;
    }

    /// The instance has answered the window of the last [`fill`](Self::fill) with a plan.
    pub(super) fn answered(&mut self) {
        self.is_held = true;
    }

    /// Finds the rows that the instance lacks; false: its window must show every worker. Until
    /// [`answered`](Self::answered) it is unknown whether the instance has taken them in.
    pub(super) fn fill(&mut self, window: &Window, residents: &[Resident]) -> bool {
        let Window { now, workers, .. } = window;
        let is_held = std::mem::take(&mut self.is_held) && self.now <= *now;
        self.now = *now;
        let since = Some(window.changes.since).filter(|&since| since > 0);
        let is_next = since.is_some() && self.number == since;
        self.number = since.map(|_| window.id);
        if !is_held || self.held.up.len() != workers.up.len() {
            self.hold(workers, residents);
            return false;
        }
        match is_next {
            true => self.take(&window.changes.workers, workers.up.len(), residents),
            false => self.look(*now, workers, residents),
        }
        self.rows.clear();
        for at in self.marks.positions() {
            self.rows.push(at, workers);
            copy_row(&mut self.held, at, workers);
        }
        true
    }

    /// The rows of the last [`fill`](Self::fill).
    pub(super) fn rows(&self) -> &WorkerRows {
        &self.rows
    }

    /// The residents of their workers. The list goes worker by worker.
    pub(super) fn residents_of_rows<'a>(
        &'a self,
        residents: &'a [Resident],
    ) -> impl Iterator<Item = &'a Resident> {
        let workers = self.rows.index.iter();
        workers.flat_map(|&worker| &residents[residents_of(residents, WorkerId(worker))])
    }

    /// Marks the workers that the scheduler says have changed since the window that the instance holds.
    fn take(&mut self, changed: &[WorkerId], workers: usize, residents: &[Resident]) {
        self.marks.clear(workers);
        for &worker in changed {
            self.marks.set(worker.index());
            let (held, new) = (
                residents_of(&self.residents, worker),
                residents_of(residents, worker),
            );
            if self.residents[held.clone()] != residents[new.clone()] {
                self.residents.splice(held, residents[new].iter().copied());
            }
        }
    }

    /// Marks those that differ.
    fn look(&mut self, now: Time, workers: &Workers, residents: &[Resident]) {
        self.compare(now, workers);
        if self.residents != residents {
            self.compare_residents(residents);
            self.residents.clear();
            self.residents.extend_from_slice(residents);
        }
    }

    fn hold(&mut self, workers: &Workers, residents: &[Resident]) {
        self.held.clone_from(workers);
        self.residents.clear();
        self.residents.extend_from_slice(residents);
    }

    fn compare(&mut self, now: Time, new: &Workers) {
        let Self { held, marks, .. } = self;
        // A time that has passed counts as `now`: it moves on without a change.
        let differs = |held: &u64, new: &u64| held.max(&now.0) != new.max(&now.0);
        marks.clear(new.up.len());
        marks.compare(&held.busy_until, &new.busy_until, differs);
        marks.compare(&held.free_at, &new.free_at, differs);
        marks.compare(&held.running_since, &new.running_since, u64::ne);
        marks.compare(&held.running_variant, &new.running_variant, u32::ne);
        marks.compare(&held.queued, &new.queued, u32::ne);
        marks.compare(&held.parked, &new.parked, u32::ne);
        marks.compare(&held.free_memory, &new.free_memory, u64::ne);
        marks.compare(&held.up, &new.up, u8::ne);
        marks.compare(&held.incarnation, &new.incarnation, u32::ne);
    }

    /// Marks the workers whose resident variants differ. The lists go worker by worker.
    fn compare_residents(&mut self, new: &[Resident]) {
        let (mut held, mut new) = (&self.residents[..], new);
        while let Some(worker) = first_of(held, new) {
            let of_worker = |list: &[Resident]| {
                let mut others = list.iter();
                others
                    .position(|resident| resident.worker != worker)
                    .unwrap_or(list.len())
            };
            let (held_now, held_rest) = held.split_at(of_worker(held));
            let (new_now, new_rest) = new.split_at(of_worker(new));
            if held_now != new_now {
                self.marks.set(worker.index());
            }
            (held, new) = (held_rest, new_rest);
        }
    }
}

/// The rows of a worker in a list that goes worker by worker.
fn residents_of(list: &[Resident], worker: WorkerId) -> Range<usize> {
    let from = list.partition_point(|resident| resident.worker < worker);
    let own = list[from..].iter();
    from..from + own.take_while(|resident| resident.worker == worker).count()
}

/// The first worker that either list goes on with.
fn first_of(one: &[Resident], other: &[Resident]) -> Option<WorkerId> {
    let heads = one.first().into_iter().chain(other.first());
    heads.map(|resident| resident.worker).min()
}

fn copy_row(to: &mut Workers, at: usize, from: &Workers) {
    to.busy_until[at] = from.busy_until[at];
    to.free_at[at] = from.free_at[at];
    to.running_since[at] = from.running_since[at];
    to.running_variant[at] = from.running_variant[at];
    to.queued[at] = from.queued[at];
    to.parked[at] = from.parked[at];
    to.free_memory[at] = from.free_memory[at];
    to.up[at] = from.up[at];
    to.incarnation[at] = from.incarnation[at];
}

/// A worker's life as the contract shows it: 0 while it is away, otherwise its incarnation.
pub(super) fn up_of(up: u8, incarnation: u32) -> u32 {
    match up {
        0 => 0,
        _ => incarnation,
    }
}

// === impl WorkerRows ===

impl WorkerRows {
    fn clear(&mut self) {
        let Self {
            index,
            busy_until,
            free_at,
            running_since,
            running_variant,
            queued,
            parked,
            free_memory,
            up,
        } = self;
        for column in [busy_until, free_at, running_since, free_memory] {
            column.clear();
        }
        for column in [index, running_variant, queued, parked, up] {
            column.clear();
        }
    }

    fn push(&mut self, at: usize, from: &Workers) {
        self.index.push(at as u32);
        self.busy_until.push(from.busy_until[at]);
        self.free_at.push(from.free_at[at]);
        self.running_since.push(from.running_since[at]);
        self.running_variant.push(from.running_variant[at]);
        self.queued.push(from.queued[at]);
        self.parked.push(from.parked[at]);
        self.free_memory.push(from.free_memory[at]);
        self.up.push(up_of(from.up[at], from.incarnation[at]));
    }
}

// === impl Marks ===

impl Marks {
    /// No marks, for this many workers.
    fn clear(&mut self, workers: usize) {
        self.words.clear();
        self.words.resize(workers.div_ceil(GROUP), 0);
    }

    fn set(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / GROUP) {
            *word |= 1 << (at % GROUP);
        }
    }

    /// Marks the positions at which two columns differ.
    fn compare<T: PartialEq>(&mut self, one: &[T], other: &[T], differs: impl Fn(&T, &T) -> bool) {
        let groups = one.chunks(GROUP).zip(other.chunks(GROUP));
        for (word, (one, other)) in self.words.iter_mut().zip(groups) {
            if one == other {
                continue;
            }
            let rows = || one.iter().zip(other);
            // Without branches, because mostly only times differ, and none of them by a change.
            if rows().fold(false, |any, (one, other)| any | differs(one, other)) {
                for (at, (one, other)) in rows().enumerate() {
                    *word |= u64::from(differs(one, other)) << at;
                }
            }
        }
    }

    /// Marked positions, ascending.
    fn positions(&self) -> impl Iterator<Item = usize> + use<'_> {
        let words = self.words.iter().enumerate();
        words.flat_map(|(group, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let at = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (at < GROUP).then_some(group * GROUP + at)
            })
        })
    }
}
