//! All workers of a pool, with indexes, and their columns in windows.
//!
//! Mostly one or two workers change between two windows. Mutable access marks a worker as touched;
//! [`refresh`](WorkerSet::refresh) brings counts and sets up to date for those, and the indexes that only some
//! pools ask for catch up when they are asked. So the time of a window does not depend on the number of
//! workers.

use std::ops::{Deref, Index, IndexMut};
use std::sync::Arc;

use super::Worker;
use super::classes::{WorkerClass, WorkerClasses};
use super::facts::WorkerFacts;
use super::least::LeastTree;
use super::marks::{MarkedWorkers, WorkerBits};
use super::overrun::Overruns;
use super::queues::QueuedBatches;
use super::shown::{ShownWorkers, WorkerRow};
use crate::catalog::WorkerSpec;
use crate::ids::{BatchId, WorkerId};
use crate::time::Time;
use crate::window::{self, Resident, Window};

/// Workers by id. Reading is reading a slice; mutable access marks the worker as touched.
#[derive(Debug)]
pub(crate) struct WorkerSet {
    workers: Vec<Worker>,
    /// By worker.
    facts: Vec<WorkerFacts>,
    /// Workers whose facts may be out of date. The counts and sets below are without them.
    touched: MarkedWorkers,
    idle: WorkerBits,
    /// Requests wait in a lane for others of their batch.
    gathering: WorkerBits,
    free: usize,
    up: usize,
    /// Workers with parked requests.
    parking: usize,
    classes: WorkerClasses,
    overruns: Overruns,
    /// When each worker has no batch left.
    ends: LeastTree,
    queues: QueuedBatches,
    shown: ShownWorkers,
    /// Workers that `ends`, `classes` and `queues` have yet to look at.
    stale: [MarkedWorkers; 3],
}

const ENDS: usize = 0;
const CLASSES: usize = 1;
const QUEUES: usize = 2;

// === impl WorkerSet ===

impl WorkerSet {
    pub(crate) fn new(specs: &[WorkerSpec]) -> Self {
        let mut made = Self {
            workers: Vec::new(),
            facts: Vec::new(),
            touched: MarkedWorkers::default(),
            idle: WorkerBits::default(),
            gathering: WorkerBits::default(),
            free: 0,
            up: 0,
            parking: 0,
            classes: WorkerClasses::default(),
            overruns: Overruns::default(),
            ends: LeastTree::new(0),
            queues: QueuedBatches::default(),
            shown: ShownWorkers::default(),
            stale: Default::default(),
        };
        made.fit(specs);
        made
    }

    /// Adapts to a catalog that may have more workers.
    pub(crate) fn fit(&mut self, specs: &[WorkerSpec]) {
        self.all_mut();
        for (worker, spec) in self.workers.iter_mut().zip(specs) {
            worker.outstanding = spec.outstanding.max(1) as usize;
        }
        for spec in &specs[self.workers.len()..] {
            self.workers.push(Worker::new(spec));
            self.facts.push(WorkerFacts::default());
        }
        self.classes = WorkerClasses::of(specs);
        self.ends = LeastTree::new(specs.len());
        self.all_mut();
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

    fn touched(&self) -> impl Iterator<Item = &Worker> {
        self.touched.list().iter().map(|&worker| &self[worker])
    }

    /// Whether any worker is idle.
    pub(crate) fn any_idle(&self) -> bool {
        self.idle.len() > 0 || self.touched().any(Worker::is_idle)
    }

    /// Whether a worker with at least this memory is idle.
    pub(crate) fn any_idle_with(&self, memory_bytes: u64) -> bool {
        self.any_with(memory_bytes, |class| class.idle > 0, Worker::is_idle)
    }

    /// Whether any worker would be sent a batch at once.
    pub(crate) fn any_free(&self) -> bool {
        self.free > 0 || self.touched().any(Worker::is_free)
    }

    /// Whether requests are parked on any worker.
    pub(crate) fn any_parked(&self) -> bool {
        self.parking > 0 || self.touched().any(|worker| worker.parked > 0)
    }

    /// Workers that are up.
    pub(crate) fn up(&self) -> usize {
        self.up + self.touched().filter(|worker| worker.up).count()
    }

    /// Workers to count on: those that are up, or one while none is, since it may be back in time.
    pub(crate) fn expected(&self) -> usize {
        self.up().max(1)
    }

    /// Whether a worker with at least this memory is up.
    pub(crate) fn any_up_with(&self, memory_bytes: u64) -> bool {
        self.any_with(memory_bytes, |class| class.up > 0, |worker| worker.up)
    }

    /// Whether a worker with at least this memory has a property: `has` decides for one, `any_has` for those
    /// of a class that were not written to since.
    fn any_with(
        &self,
        memory_bytes: u64,
        any_has: impl Fn(&WorkerClass) -> bool,
        has: impl Fn(&Worker) -> bool,
    ) -> bool {
        let fits = |class: &WorkerClass| memory_bytes <= class.memory_bytes;
        let mut classes = self.classes.all().iter();
        classes.any(|class| fits(class) && any_has(class))
            || (self.touched.list().iter())
                .any(|&worker| has(&self[worker]) && fits(self.classes.of_worker(worker)))
    }

    /// The classes of workers.
    pub(crate) fn all_classes(&self) -> &[WorkerClass] {
        self.classes.all()
    }

    /// The same, each with whether one of them is up.
    pub(crate) fn classes(&mut self) -> impl Iterator<Item = (&WorkerClass, bool)> {
        self.refresh();
        let classes = self.classes.all().iter();
        classes.map(|class| (class, class.up > 0))
    }

    /// The idle workers, in the catalog's order.
    pub(crate) fn idle(&mut self) -> impl Iterator<Item = WorkerId> + use<'_> {
        self.refresh();
        self.idle.iter()
    }

    /// The workers with a lane in which requests wait for others of their batch, in the catalog's order.
    pub(crate) fn gathering(&mut self) -> impl Iterator<Item = WorkerId> + use<'_> {
        self.refresh();
        self.gathering.iter()
    }

    /// Brings counts and sets up to date.
    pub(crate) fn refresh(&mut self) {
        while let Some(worker) = self.touched.pop() {
            let at = worker.index();
            let facts = WorkerFacts::of(&self.workers[at]);
            let before = std::mem::replace(&mut self.facts[at], facts);
            self.idle.set(worker, facts.idle);
            self.gathering.set(worker, facts.gathers);
            self.free += usize::from(facts.free);
            self.up += usize::from(facts.up);
            self.parking += usize::from(facts.parks);
            let class = self.classes.of_worker_mut(worker);
            class.up += usize::from(facts.up);
            class.idle += usize::from(facts.idle);
            self.overruns.change(worker, &before.times, &facts.times);
            for stale in &mut self.stale {
                stale.mark(worker);
            }
            self.shown.stale.mark(worker);
        }
    }

    fn touch(&mut self, worker: WorkerId) {
        if !self.touched.mark(worker) {
            return;
        }
        let facts = &mut self.facts[worker.index()];
        self.idle.set(worker, false);
        self.gathering.set(worker, false);
        self.free -= usize::from(facts.free);
        self.up -= usize::from(facts.up);
        self.parking -= usize::from(facts.parks);
        if facts.up {
            let class = self.classes.of_worker_mut(worker);
            class.up -= 1;
            class.idle -= usize::from(facts.idle);
        }
        facts.clear();
    }

    // ---- ends -------------------------------------------------------------------------

    /// When the first worker that is up has no batch left; `now` if none is up.
    pub(crate) fn earliest_free(&mut self, now: Time) -> Time {
        self.refresh();
        while let Some(worker) = self.stale[ENDS].pop() {
            let at = worker.index();
            self.ends.set(at, self.facts[at].last_end());
        }
        match self.up {
            0 => now,
            _ => Time(self.ends.least()).max(now),
        }
    }

    /// Of the workers that are up with at least this memory: one with a place and an empty queue if there is
    /// one, and of those the one that is free first.
    pub(crate) fn first_free(&mut self, now: Time, memory_bytes: u64) -> Option<WorkerId> {
        self.look_at_classes(now);
        let open = self.first_of(now, memory_bytes, true);
        let first = open.or_else(|| self.first_of(now, memory_bytes, false));
        first.map(|(_, worker)| worker)
    }

    /// The worker that is free first among those that are up with at least this memory.
    pub(crate) fn first_to_end(&mut self, now: Time, memory_bytes: u64) -> Option<WorkerId> {
        self.look_at_classes(now);
        let firsts = [true, false].map(|open| self.first_of(now, memory_bytes, open));
        firsts.into_iter().flatten().min().map(|(_, worker)| worker)
    }

    fn first_of(&self, now: Time, memory_bytes: u64, open: bool) -> Option<(Time, WorkerId)> {
        let able = self.overruns.moving().iter().filter(|&&worker| {
            let facts = &self.facts[worker.index()];
            let memory = self.classes.of_worker(worker).memory_bytes;
            facts.up && facts.open == open && memory_bytes <= memory
        });
        let ends = able.map(|&worker| (self.facts[worker.index()].times.free_at(now), worker));
        let first = self.classes.first_free(now, memory_bytes, open);
        ends.chain(first).min()
    }

    fn look_at_classes(&mut self, now: Time) {
        self.refresh();
        let stale = &mut self.stale[CLASSES];
        self.overruns.advance(now, |worker| {
            stale.mark(worker);
        });
        while let Some(worker) = stale.pop() {
            let facts = &self.facts[worker.index()];
            self.classes.set(worker, facts, self.overruns.moves(worker));
        }
    }

    // ---- queues -----------------------------------------------------------------------

    /// Brings the index of waiting batches up to date.
    pub(crate) fn look_at_queues(&mut self) {
        self.refresh();
        while let Some(worker) = self.stale[QUEUES].pop() {
            self.queues.set(worker, &self.workers[worker.index()]);
        }
    }

    /// The worker in whose queue a batch waits. The index must be up to date, also below.
    pub(crate) fn queue_of(&self, batch: BatchId) -> Option<WorkerId> {
        debug_assert!(self.touched.list().is_empty(), "a worker was written to");
        self.queues.worker_of(batch)
    }

    /// Batches in all queues together.
    pub(crate) fn queued_batches(&self) -> usize {
        self.queues.len()
    }

    /// Requests in these batches.
    pub(crate) fn queued_requests(&self) -> usize {
        self.queues.requests()
    }

    // ---- windows ----------------------------------------------------------------------

    /// Brings the columns of windows to `now`. `whole`: times that have passed move to `now` as well, for
    /// readers who do not read them so.
    pub(crate) fn show(&mut self, now: Time, whole: bool, residents: bool) {
        self.refresh();
        let stale = &mut self.stale[CLASSES];
        self.overruns.advance(now, |worker| {
            stale.mark(worker);
        });
        let moving = self.overruns.moving();
        self.shown.show(now, &self.workers, moving, whole);
        if residents {
            self.shown.show_residents(&self.workers);
        }
    }

    /// Exchanges the columns with those of a window: the policy reads them there, and a second call takes
    /// them back.
    pub(crate) fn lend(&mut self, window: &mut Window, residents: bool) {
        self.shown.lend(window, residents);
    }

    /// The columns of the last window.
    pub(crate) fn columns(&self) -> &window::Workers {
        self.shown.columns()
    }

    /// The variants that workers hold, worker by worker, if the last window showed them.
    pub(crate) fn residents(&self) -> &[Resident] {
        self.shown.residents()
    }

    /// The same for a window that is kept.
    pub(crate) fn shared_residents(&mut self) -> Arc<[Resident]> {
        self.shown.shared_residents()
    }

    /// Takes the changes since the last call: the rows before them, and the workers.
    pub(crate) fn take_changes(
        &mut self,
        before: &mut Vec<WorkerRow>,
        workers: &mut Vec<WorkerId>,
    ) {
        self.shown.take_changes(before, workers);
    }

    /// The rows of the last window that took its changes.
    pub(crate) fn rows(&self) -> Vec<WorkerRow> {
        self.shown.rows()
    }

    /// Workers in the last window.
    pub(crate) fn shown(&self) -> usize {
        self.shown.len()
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

#[cfg(test)]
mod tests;
