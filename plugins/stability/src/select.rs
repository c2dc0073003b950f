//! Which queue is served: the one whose service leaves the lowest predicted score (section V-C,
//! eq. 7, Algorithm 1), one round after the other.

mod protect;

use std::cmp::Ordering;

use switchyard_sdk::{Window, WorkerId, WorkerRef};

use crate::exits::{Batch, ExitRule, Ladders};
use crate::queue::Queue;
use crate::settings::{Selection, Settings};
use crate::{baselines, symphony};

/// The rounds of one window. Each sees what earlier ones took.
pub(crate) struct Rounds<'a> {
    window: Window<'a>,
    pub(crate) settings: &'a Settings,
    ladders: &'a Ladders,
    pub(crate) queues: &'a mut [Queue],
    devices: Vec<Device>,
}

/// A worker that is up, and when it is free, in microseconds from now.
#[derive(Clone, Copy, Debug)]
struct Device {
    worker: WorkerId,
    free_us: f64,
}

/// A queue, and the batch that would be served of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) queue: usize,
    pub(crate) batch: Batch,
    /// How long its most urgent task has waited.
    pub(crate) longest_us: f64,
}

/// What a candidate leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    /// Tasks that will be late, where they are counted.
    late: usize,
    /// Stability scores of the predicted rounds (eq. 4), summed up.
    score: f64,
}

// === impl Rounds ===

impl<'a> Rounds<'a> {
    /// Takes in what is pending.
    pub(crate) fn new(
        window: &Window<'a>,
        settings: &'a Settings,
        ladders: &'a Ladders,
        queues: &'a mut [Queue],
    ) -> Self {
        for queue in queues.iter_mut() {
            queue.fill(window, settings.deadlines);
            if settings.policy.selection() == Selection::LowestScore {
                queue.weigh(settings.clip);
            }
        }
        let up = window.workers().filter(WorkerRef::is_up);
        let devices = up.map(|worker| Device {
            worker: worker.id(),
            free_us: worker.free_at_us().saturating_sub(window.now_us()) as f64,
        });
        Self {
            devices: devices.collect(),
            window: *window,
            settings,
            ladders,
            queues,
        }
    }

    /// What an idle worker serves now; none where nothing waits that it can run, or that may
    /// start already.
    pub(crate) fn choose(&mut self, worker: WorkerId) -> Option<Candidate> {
        let device = self.devices.iter().position(|d| d.worker == worker)?;
        match self.settings.policy.selection() {
            Selection::LowestScore => {
                let found = self.best(device, self.settings.lookahead);
                found.map(|(_, candidate)| candidate)
            }
            Selection::LongestQueue => {
                baselines::longest_queue(self.candidates(device), self.queues)
            }
            Selection::EarliestDeadline => {
                baselines::earliest_deadline(self.candidates(device), self.queues)
            }
            Selection::Deferred => symphony::due(
                self.candidates(device),
                self.queues,
                self.settings.batch_max,
            ),
        }
    }

    /// When the first batch that a worker could serve must start, in microseconds from now.
    pub(crate) fn next_start_us(&self, worker: WorkerId) -> Option<f64> {
        let device = self.devices.iter().position(|d| d.worker == worker)?;
        symphony::next_start_us(self.candidates(device), self.queues)
    }

    /// The worker serves this: what it takes no longer waits.
    pub(crate) fn serve(&mut self, worker: WorkerId, candidate: &Candidate) {
        self.queues[candidate.queue].take(candidate.batch.size);
        self.occupy(worker, candidate.batch.latency_us);
    }

    /// The worker is busy for so much longer.
    pub(crate) fn occupy(&mut self, worker: WorkerId, for_us: f64) {
        if let Some(device) = self.devices.iter_mut().find(|d| d.worker == worker) {
            device.free_us += for_us;
        }
    }

    /// A batch of each queue that a device can serve once it is free.
    fn candidates(&self, device: usize) -> impl Iterator<Item = Candidate> {
        (0..self.queues.len()).filter_map(move |queue| self.candidate(queue, device))
    }

    fn candidate(&self, queue: usize, device: usize) -> Option<Candidate> {
        self.candidate_by(self.settings.policy.exit_rule(), queue, device)
    }

    fn candidate_by(&self, rule: ExitRule, queue: usize, device: usize) -> Option<Candidate> {
        let found = &self.queues[queue];
        let Device { worker, free_us } = self.devices[device];
        let state = self.window.worker(worker);
        let batch = self.ladders.of(worker, found.app).batch(
            rule,
            found,
            free_us,
            self.settings.batch_max,
            |variant| state.holds(variant),
        )?;
        Some(Candidate {
            queue,
            batch,
            longest_us: found.longest_wait_us()?,
        })
    }

    /// The candidate with the best outcome of so many rounds, the first of which is this
    /// device's; of equal ones that with the longest waiting task.
    fn best(&mut self, device: usize, rounds: u32) -> Option<(Outcome, Candidate)> {
        let mut best: Option<(Outcome, Candidate)> = None;
        for queue in 0..self.queues.len() {
            let Some(candidate) = self.candidate(queue, device) else {
                continue;
            };
            let outcome = self.outcome(&candidate, device, rounds);
            let is_better = best.as_ref().is_none_or(|(lowest, other)| {
                let order = outcome.compare(lowest);
                let order = order.then(other.longest_us.total_cmp(&candidate.longest_us));
                order.is_lt()
            });
            if is_better {
                best = Some((outcome, candidate));
            }
        }
        best
    }

    /// Queue status prediction (section V-C): what is served is gone, everything else waits on
    /// until some worker is free. On one worker that is as long as the batch takes.
    fn outcome(&mut self, candidate: &Candidate, device: usize, rounds: u32) -> Outcome {
        let Batch {
            size, latency_us, ..
        } = candidate.batch;
        let free_us = self.devices[device].free_us;
        let mut outcome = Outcome::default();
        if self.settings.protect {
            let served = &self.queues[candidate.queue];
            outcome.late = served.late_among(size, free_us + latency_us);
        }
        self.queues[candidate.queue].take(size);
        self.devices[device].free_us += latency_us;
        if self.settings.protect {
            outcome.late += self.late_at_best();
        }
        let next = self.first_free();
        let longer_us = self.devices[next].free_us;
        let scores = self.queues.iter().map(|queue| queue.score_after(longer_us));
        outcome.score = scores.sum();
        if rounds > 1
            && let Some((later, _)) = self.best(next, rounds - 1)
        {
            outcome.score += later.score;
        }
        self.devices[device].free_us = free_us;
        self.queues[candidate.queue].untake(size);
        outcome
    }

    /// The device that decides next.
    fn first_free(&self) -> usize {
        let free_us = |&device: &usize| self.devices[device].free_us;
        let devices = 0..self.devices.len();
        devices
            .min_by(|a, b| free_us(a).total_cmp(&free_us(b)))
            .unwrap_or(0)
    }
}

// === impl Outcome ===

impl Outcome {
    fn compare(&self, other: &Self) -> Ordering {
        let order = self.late.cmp(&other.late);
        order.then(self.score.total_cmp(&other.score))
    }
}
