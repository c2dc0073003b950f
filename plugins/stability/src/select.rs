//! Selects the queue whose service leaves the lowest predicted score (section V-C, eq. 7, Algorithm
//! 1), round after round.

use std::cmp::Ordering;

use switchyard_sdk::{Window, WorkerId, WorkerRef};

use crate::candidate::Candidate;
use crate::exits::{ExitLadders, PossibleBatch};
use crate::queue::AppQueue;
use crate::settings::{ExitRule, QueueSelection, StabilitySettings};
use crate::{baselines, symphony};

/// The rounds of one window, one per idle worker. Each sees the queues that earlier ones left.
pub(crate) struct Rounds<'a> {
    window: Window<'a>,
    pub(crate) settings: &'a StabilitySettings,
    ladders: &'a ExitLadders,
    pub(crate) queues: &'a mut [AppQueue],
    devices: Vec<Device>,
}

/// A worker that is up, with the time until it is free.
#[derive(Clone, Copy, Debug)]
struct Device {
    worker: WorkerId,
    free_us: f64,
}

/// The predicted outcome of serving a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    /// Late tasks, if `protect` is on.
    late: usize,
    /// Sum of the stability scores of the predicted rounds (eq. 4).
    score: f64,
}

// === impl Rounds ===

impl<'a> Rounds<'a> {
    /// Reads the pending requests.
    pub(crate) fn new(
        window: &Window<'a>,
        settings: &'a StabilitySettings,
        ladders: &'a ExitLadders,
        queues: &'a mut [AppQueue],
    ) -> Self {
        for queue in queues.iter_mut() {
            queue.fill(window, settings.deadlines);
            if settings.policy.selection() == QueueSelection::LowestScore {
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

    /// The candidate that an idle worker serves now; none if no task can run there, or none must
    /// start yet.
    pub(crate) fn choose(&mut self, worker: WorkerId) -> Option<Candidate> {
        let device = self.devices.iter().position(|d| d.worker == worker)?;
        match self.settings.policy.selection() {
            QueueSelection::LowestScore => {
                let found = self.best(device, self.settings.lookahead);
                found.map(|(_, candidate)| candidate)
            }
            QueueSelection::LongestQueue => {
                baselines::longest_queue(self.candidates(device), self.queues)
            }
            QueueSelection::EarliestDeadline => {
                baselines::earliest_deadline(self.candidates(device), self.queues)
            }
            QueueSelection::Deferred => symphony::due(
                self.candidates(device),
                self.queues,
                self.settings.batch_max,
                self.settings.margin_us,
            ),
        }
    }

    /// When the first batch of a worker must start, in microseconds from now.
    pub(crate) fn next_start_us(&self, worker: WorkerId) -> Option<f64> {
        let device = self.devices.iter().position(|d| d.worker == worker)?;
        symphony::next_start_us(
            self.candidates(device),
            self.queues,
            self.settings.margin_us,
        )
    }

    /// Records that the worker serves a candidate.
    pub(crate) fn serve(&mut self, worker: WorkerId, candidate: &Candidate) {
        self.queues[candidate.queue].take(candidate.batch.size);
        self.occupy(worker, candidate.batch.latency_us);
    }

    /// Records that the worker is busy for `for_us` more.
    pub(crate) fn occupy(&mut self, worker: WorkerId, for_us: f64) {
        if let Some(device) = self.devices.iter_mut().find(|d| d.worker == worker) {
            device.free_us += for_us;
        }
    }

    /// One candidate per queue that a device can serve once it is free.
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

    /// The candidate with the best outcome over `rounds` rounds, the first of which is this
    /// device's; of equal outcomes the one with the longest waiting task.
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

    /// Queue status prediction (section V-C): the batch is gone, all other tasks wait until a
    /// worker is free. With one worker that is the latency of the batch.
    fn outcome(&mut self, candidate: &Candidate, device: usize, rounds: u32) -> Outcome {
        let PossibleBatch {
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

    /// Number of tasks, in the first batch of every queue, that miss their SLO even if these
    /// batches run next, the most urgent first, each from its shallowest exit. Not in the paper: a
    /// score that sums over tasks lets a long queue with slack outweigh a short one without.
    fn late_at_best(&mut self) -> usize {
        let mut waiting: Vec<(f64, usize)> = Vec::with_capacity(self.queues.len());
        for (at, queue) in self.queues.iter().enumerate() {
            let slack_us = queue
                .longest_wait_us()
                .map(|wait_us| queue.tau_us - wait_us);
            waiting.extend(slack_us.map(|slack_us| (slack_us, at)));
        }
        waiting.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let devices = self.devices.clone();
        let mut late = 0;
        for (_, queue) in waiting {
            let next = self.first_free();
            if let Some(rescue) = self.candidate_by(ExitRule::Early, queue, next) {
                let end_us = self.devices[next].free_us + rescue.batch.latency_us;
                self.devices[next].free_us = end_us;
                late += self.queues[queue].late_among(rescue.batch.size, end_us);
            }
        }
        self.devices = devices;
        late
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
