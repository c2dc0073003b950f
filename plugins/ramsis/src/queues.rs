//! Who serves which pending request. On the host all of them are pending; that they belong to
//! workers' queues is known here alone.

use ramsis_tables::Balancing;
use switchyard_sdk::{RequestId, RequestRef, Window, WorkerId};

use crate::class::Class;

/// A request that belongs to no worker's queue.
pub(crate) const NOBODY: u32 = u32::MAX;

/// How fast a class's share of its app's arrivals follows: over some 256 of them.
const SHARE_GAIN: f64 = 1.0 / 256.0;

/// The workers' queues. Buffers are kept between windows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues {
    /// Requests that were pending in the last window, ascending by id, which is the order of
    /// arrival.
    pub(crate) known: Vec<Known>,
    before: Vec<Known>,
    /// By worker.
    pub(crate) workers: Vec<WorkerQueue>,
    /// What waits for idle workers: worker, deadline, position in the window.
    pub(crate) due: Vec<(u32, u64, u32)>,
    /// Positions of requests that belong to nobody.
    pub(crate) shared: Vec<u32>,
}

/// A pending request and its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) id: RequestId,
    /// Its position, or [`NOBODY`].
    pub(crate) worker: u32,
}

/// One worker, as far as queues are concerned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerQueue {
    is_up: bool,
    pub(crate) is_idle: bool,
    /// Requests of its queue that wait.
    waiting: u32,
    /// Requests of the batch that it was given last, and when that should end.
    running: u32,
    ends_us: u64,
}

// === impl Queues ===

impl Queues {
    /// Takes a window in: requests that are gone are forgotten, new ones and those of workers
    /// that are away are given to workers in the order of their arrival, and what waits for idle
    /// workers is listed by deadline.
    pub(crate) fn fill(
        &mut self,
        window: &Window<'_>,
        classes: &mut [Class],
        of_app: &[Vec<usize>],
    ) {
        self.look(window);
        std::mem::swap(&mut self.known, &mut self.before);
        self.known.clear();
        self.due.clear();
        self.shared.clear();
        let is_parked = !window.raw().requests.progress.is_empty();
        let mut before = 0;
        for request in window.requests() {
            let id = request.id();
            while self.before.get(before).is_some_and(|known| known.id < id) {
                before += 1;
            }
            // It goes on where it is parked.
            if is_parked && request.progress().is_some() {
                continue;
            }
            let known = self.before.get(before).filter(|known| known.id == id);
            let is_new = known.is_none();
            let has = known.and_then(|known| self.workers.get(known.worker as usize));
            let worker = match (known, has) {
                (Some(known), Some(queue)) if queue.is_up => known.worker,
                _ => self.give(request, is_new, classes, of_app),
            };
            self.known.push(Known { id, worker });
            let position = request.index() as u32;
            match self.workers.get_mut(worker as usize) {
                None => self.shared.push(position),
                Some(queue) => {
                    queue.waiting += 1;
                    if queue.is_idle {
                        self.due.push((worker, request.deadline_us(), position));
                    }
                }
            }
        }
        self.due.sort_unstable();
    }

    fn look(&mut self, window: &Window<'_>) {
        let workers = window.workers();
        self.workers.resize(workers.len(), WorkerQueue::default());
        for (queue, worker) in self.workers.iter_mut().zip(workers) {
            queue.is_up = worker.is_up();
            queue.is_idle = worker.is_idle();
            queue.waiting = 0;
        }
    }

    /// The worker that a request goes to.
    fn give(
        &self,
        request: RequestRef<'_>,
        is_new: bool,
        classes: &mut [Class],
        of_app: &[Vec<usize>],
    ) -> u32 {
        let Some(of_app) = of_app.get(request.app().index()) else {
            return NOBODY;
        };
        // The longest deadline that it has time for, else the shortest there is.
        let time_us = request.deadline_us().saturating_sub(request.arrival_us());
        let has_time = |&&class: &&usize| classes[class].slo_us <= time_us;
        let Some(&chosen) = of_app.iter().rev().find(has_time).or(of_app.first()) else {
            return NOBODY;
        };
        if is_new && of_app.len() > 1 {
            for &class in of_app {
                let share = &mut classes[class].share;
                *share += (f64::from(u8::from(class == chosen)) - *share) * SHARE_GAIN;
            }
        }
        let class = &mut classes[chosen];
        let count = class.workers.len();
        let place = match class.balancing() {
            Balancing::RoundRobin => self.in_turn(class),
            Balancing::ShortestQueue => self.shortest(class, request.arrival_us()),
        };
        match place {
            None => NOBODY,
            Some(place) => {
                class.next = (place + 1) % count;
                class.workers[place].0.0
            }
        }
    }

    /// The next worker in turn that is up.
    fn in_turn(&self, class: &Class) -> Option<usize> {
        let count = class.workers.len();
        let places = (0..count).map(|step| (class.next + step) % count);
        places
            .into_iter()
            .find(|&place| self.of(class, place).is_up)
    }

    /// The worker with the fewest requests, waiting and running, when this one arrived; of equal
    /// ones the next in turn.
    fn shortest(&self, class: &Class, arrival_us: u64) -> Option<usize> {
        let count = class.workers.len();
        let places = (0..count).map(|step| (class.next + step) % count);
        let up = places.filter(|&place| self.of(class, place).is_up);
        up.min_by_key(|&place| self.of(class, place).held_at(arrival_us))
    }

    fn of(&self, class: &Class, place: usize) -> WorkerQueue {
        let WorkerId(worker) = class.workers[place].0;
        self.workers
            .get(worker as usize)
            .copied()
            .unwrap_or_default()
    }

    /// The worker runs a batch of so many until then.
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
    /// Requests it has. An idle worker was busy until its batch ended: what arrived before was
    /// not there for it to take.
    fn held_at(&self, arrival_us: u64) -> u32 {
        let is_running = !self.is_idle || arrival_us < self.ends_us;
        self.waiting + if is_running { self.running } else { 0 }
    }
}
