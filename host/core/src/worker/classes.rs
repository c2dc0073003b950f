//! Workers that can run the same batches equally fast, and which of them is free first.

use super::facts::WorkerFacts;
use super::least::{ABSENT, LeastTree};
use crate::catalog::WorkerSpec;
use crate::ids::{KindId, WorkerId};
use crate::time::Time;

/// Workers of one kind with the same memory.
#[derive(Debug)]
pub(crate) struct WorkerClass {
    pub(crate) kind: KindId,
    pub(crate) memory_bytes: u64,
    /// In the catalog's order.
    workers: Vec<WorkerId>,
    /// Workers that are up, without those that were written to since.
    pub(super) up: usize,
    /// Idle workers, without those that were written to since.
    pub(super) idle: usize,
    /// Ends of the workers that have a place and an empty queue.
    open: LeastTree,
    /// Ends of the others.
    busy: LeastTree,
}

/// All classes of a pool.
#[derive(Debug, Default)]
pub(super) struct WorkerClasses {
    classes: Vec<WorkerClass>,
    /// By worker: its class, and its position there.
    places: Vec<(usize, usize)>,
}

// === impl WorkerClasses ===

impl WorkerClasses {
    pub(super) fn of(specs: &[WorkerSpec]) -> Self {
        let mut made = Self::default();
        for (worker, spec) in (0..).map(WorkerId).zip(specs) {
            let same = |class: &WorkerClass| {
                (class.kind, class.memory_bytes) == (spec.kind, spec.memory_bytes)
            };
            let class = made.classes.iter().position(same).unwrap_or_else(|| {
                made.classes.push(WorkerClass::new(spec));
                made.classes.len() - 1
            });
            let workers = &mut made.classes[class].workers;
            made.places.push((class, workers.len()));
            workers.push(worker);
        }
        for class in &mut made.classes {
            class.open = LeastTree::new(class.workers.len());
            class.busy = LeastTree::new(class.workers.len());
        }
        made
    }

    pub(super) fn all(&self) -> &[WorkerClass] {
        &self.classes
    }

    pub(super) fn of_worker(&self, worker: WorkerId) -> &WorkerClass {
        &self.classes[self.places[worker.index()].0]
    }

    pub(super) fn of_worker_mut(&mut self, worker: WorkerId) -> &mut WorkerClass {
        &mut self.classes[self.places[worker.index()].0]
    }

    /// Notes the end of a worker. One that `moves` with the time counts in no tree.
    pub(super) fn set(&mut self, worker: WorkerId, facts: &WorkerFacts, moves: bool) {
        let (class, place) = self.places[worker.index()];
        let class = &mut self.classes[class];
        let end = if moves { ABSENT } else { facts.last_end() };
        let (open, busy) = match facts.open {
            true => (end, ABSENT),
            false => (ABSENT, end),
        };
        class.open.set(place, open);
        class.busy.set(place, busy);
    }

    /// Of the workers that are up with at least this memory, the one that is free first, the first of
    /// equals; `open`: of those with a place and an empty queue, otherwise of the others.
    pub(super) fn first_free(
        &self,
        now: Time,
        memory_bytes: u64,
        open: bool,
    ) -> Option<(Time, WorkerId)> {
        let fitting = self.classes.iter();
        let fitting = fitting.filter(|class| memory_bytes <= class.memory_bytes);
        let firsts = fitting.filter_map(|class| {
            let tree = if open { &class.open } else { &class.busy };
            // An end that has passed is `now`.
            let at = tree.least().max(now.0);
            let first = class.workers[tree.first_within(at)?];
            Some((Time(at), first))
        });
        firsts.min()
    }
}

// === impl WorkerClass ===

impl WorkerClass {
    fn new(spec: &WorkerSpec) -> Self {
        Self {
            kind: spec.kind,
            memory_bytes: spec.memory_bytes,
            workers: Vec::new(),
            up: 0,
            idle: 0,
            open: LeastTree::new(0),
            busy: LeastTree::new(0),
        }
    }

    /// A worker of the class, which stands for all of them.
    pub(crate) fn first(&self) -> WorkerId {
        self.workers[0]
    }
}
