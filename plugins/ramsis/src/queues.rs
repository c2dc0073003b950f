//! The worker of each pending request. The host has only pending requests; the queues exist here.

use ramsis_tables::Balancing;
use switchyard_sdk::{RequestId, RequestRef, Window, WorkerId};

use crate::class::RequestClass;

/// Weight of one arrival in a class's share: an average over some 256.
const SHARE_GAIN: f64 = 1.0 / 256.0;

/// The workers' queues. Buffers are kept between windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerQueues {
    /// Requests of the last window, ascending by id, which is the order of arrival.
    pub(crate) known: Vec<KnownRequest>,
    before: Vec<KnownRequest>,
    /// One per worker.
    pub(crate) workers: Vec<WorkerQueue>,
    /// Requests of idle workers: worker, deadline, index in the window.
    pub(crate) due: Vec<(WorkerId, u64, u32)>,
    /// Indices of requests in no worker's queue.
    pub(crate) shared: Vec<u32>,
}

/// A pending request and its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownRequest {
    pub(crate) id: RequestId,
    /// None if it is in no worker's queue.
    pub(crate) worker: Option<WorkerId>,
}

/// The queue of one worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerQueue {
    is_up: bool,
    pub(crate) is_idle: bool,
    /// Number of waiting requests.
    waiting: u32,
    /// Requests of its last batch, and the expected end of that.
    running: u32,
    ends_us: u64,
}

// === impl WorkerQueues ===

impl WorkerQueues {
    /// Reads a window: drops requests that are gone, assigns new requests and those of workers that
    /// are down in the order of arrival, and lists the requests of idle workers by deadline.
    pub(crate) fn fill(
        &mut self,
        window: &Window<'_>,
        classes: &mut [RequestClass],
        of_app: &[Vec<usize>],
    ) {
        self.read_workers(window);
        std::mem::swap(&mut self.known, &mut self.before);
        self.known.clear();
        self.due.clear();
        self.shared.clear();
        let is_parked = window.any_parked();
        let mut before = 0;
        for request in window.requests() {
            let id = request.id();
            while self.before.get(before).is_some_and(|known| known.id < id) {
                before += 1;
            }
            // It resumes on the worker that parked it.
            if is_parked && request.progress().is_some() {
                continue;
            }
            let known = self.before.get(before).filter(|known| known.id == id);
            let is_new = known.is_none();
            let has = known
                .and_then(|known| known.worker)
                .and_then(|worker| self.workers.get(worker.index()));
            let worker = match (known, has) {
                (Some(known), Some(queue)) if queue.is_up => known.worker,
                _ => self.assign(request, is_new, classes, of_app),
            };
            self.known.push(KnownRequest { id, worker });
            let position = request.index() as u32;
            match worker.and_then(|worker| Some((worker, self.workers.get_mut(worker.index())?))) {
                None => self.shared.push(position),
                Some((worker, queue)) => {
                    queue.waiting += 1;
                    if queue.is_idle {
                        self.due.push((worker, request.deadline_us(), position));
                    }
                }
            }
        }
        self.due.sort_unstable();
    }

    fn read_workers(&mut self, window: &Window<'_>) {
        let workers = window.workers();
        self.workers.resize(workers.len(), WorkerQueue::default());
        for (queue, worker) in self.workers.iter_mut().zip(workers) {
            queue.is_up = worker.is_up();
            queue.is_idle = worker.is_idle();
            queue.waiting = 0;
        }
    }

    /// Assigns a request to a worker; none if no worker of its class is up.
    fn assign(
        &self,
        request: RequestRef<'_>,
        is_new: bool,
        classes: &mut [RequestClass],
        of_app: &[Vec<usize>],
    ) -> Option<WorkerId> {
        let of_app = of_app.get(request.app().index())?;
        // The longest deadline that it has time for, otherwise the shortest.
        let time_us = request.deadline_us().saturating_sub(request.arrival_us());
        let has_time = |&&class: &&usize| classes[class].slo_us <= time_us;
        let &chosen = of_app.iter().rev().find(has_time).or(of_app.first())?;
        if is_new && of_app.len() > 1 {
            for &class in of_app {
                let share = &mut classes[class].share;
                *share += (f64::from(u8::from(class == chosen)) - *share) * SHARE_GAIN;
            }
        }
        let class = &mut classes[chosen];
        let count = class.workers.len();
        let index = match class.balancing() {
            Balancing::RoundRobin => self.in_turn(class)?,
            Balancing::ShortestQueue => self.shortest(class, request.arrival_us())?,
        };
        class.next = (index + 1) % count;
        Some(class.workers[index].0)
    }

    /// The next worker in turn that is up.
    fn in_turn(&self, class: &RequestClass) -> Option<usize> {
        let count = class.workers.len();
        let indices = (0..count).map(|step| (class.next + step) % count);
        indices
            .into_iter()
            .find(|&index| self.of(class, index).is_up)
    }

    /// The worker with the fewest requests, waiting and running, at this arrival; of equal ones the
    /// next in turn.
    fn shortest(&self, class: &RequestClass, arrival_us: u64) -> Option<usize> {
        let count = class.workers.len();
        let indices = (0..count).map(|step| (class.next + step) % count);
        let up = indices.filter(|&index| self.of(class, index).is_up);
        up.min_by_key(|&index| self.of(class, index).held_at(arrival_us))
    }

    fn of(&self, class: &RequestClass, index: usize) -> WorkerQueue {
        let (worker, _) = class.workers[index];
        self.workers
            .get(worker.index())
            .copied()
            .unwrap_or_default()
    }

    /// Records that the worker runs a batch until `ends_us`.
    pub(crate) fn runs(&mut self, worker: WorkerId, size: usize, ends_us: u64) {
        if let Some(queue) = self.workers.get_mut(worker.index()) {
            queue.is_idle = false;
            queue.running = size as u32;
            queue.ends_us = ends_us;
        }
    }
}

// === impl WorkerQueue ===

impl WorkerQueue {
    /// Requests of the worker at an arrival. A worker that is idle now was busy for arrivals before
    /// the end of its batch.
    fn held_at(&self, arrival_us: u64) -> u32 {
        let is_running = !self.is_idle || arrival_us < self.ends_us;
        self.waiting + if is_running { self.running } else { 0 }
    }
}
