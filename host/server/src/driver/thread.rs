//! The driver itself: messages in, the core's commands carried out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use switchyard_core::event::Launch;
use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::policy::FaultKind;
use switchyard_core::request::Request;
use switchyard_core::time::Time;
use switchyard_core::{Command, Event, Scheduler};
use switchyard_executor::{
    ExecuteError, Finished, Job, JobRow, Refused, Residency, Unloaded, Worker, WorkerDown,
    WorkerEvent,
};
use tokio::sync::oneshot;

use super::PoolWeights;
use super::drift::Drift;
use super::message::{Call, Message, Watch};
use super::models::{AppModels, ModelStates, WorkerModels};
use super::pace::Pace;
use super::stats::VariantCounters;
use super::status::PoolStatus;
use super::waiters::Waiters;
use crate::clock::Clock;
use crate::evidence::EvidenceQueue;
use crate::readiness::Readiness;
use crate::recorder::Recorder;
use crate::telemetry::PoolMeters;

pub(super) struct Driver {
    pub(super) name: String,
    clock: Clock,
    pub(super) scheduler: Scheduler,
    pub(super) waiters: Waiters,
    pub(super) meters: PoolMeters,
    drift: Drift,
    pub(super) counters: Arc<VariantCounters>,
    pub(super) wants_evidence: Arc<AtomicBool>,
    pub(super) readiness: Arc<Readiness>,
    evidence: Option<EvidenceQueue>,
    pub(super) recorder: Option<Recorder>,
    pub(super) watch: Option<Watch>,
    next_request: u64,
    /// Arrivals are stamped by many threads; the core sees them in order.
    last_arrival: Time,
    pub(super) faults: BTreeMap<FaultKind, u64>,
    pub(super) last_fault: Option<String>,
    /// What was asked for at the start has not all come.
    pub(super) starting: bool,
    /// By app.
    pub(super) models: Vec<AppModels>,
    /// By worker.
    pub(super) held: Vec<WorkerModels>,
    pub(super) weights: PoolWeights,
    pub(super) states: Arc<ModelStates>,
    draining: bool,
    drained: Vec<oneshot::Sender<()>>,
    stopping: bool,
    pub(super) pace: Pace,
    /// Room for messages, for whoever drives in passing.
    spare: VecDeque<Message>,
    pub(super) workers: Vec<Worker>,
}

/// What a driver is told of its models.
pub(super) struct Models {
    pub(super) pinned: Vec<Vec<VariantId>>,
    pub(super) weights: PoolWeights,
    pub(super) states: Arc<ModelStates>,
}

// === impl Driver ===

impl Driver {
    #[allow(clippy::too_many_arguments)] // One argument per part; called once.
    pub(super) fn new(
        name: String,
        clock: Clock,
        scheduler: Scheduler,
        workers: Vec<Worker>,
        evidence: Option<EvidenceQueue>,
        meters: PoolMeters,
        drift: Drift,
        counters: Arc<VariantCounters>,
        wants_evidence: Arc<AtomicBool>,
        readiness: Arc<Readiness>,
        recorder: Option<Recorder>,
        models: Models,
    ) -> Self {
        let Models {
            pinned,
            weights,
            states,
        } = models;
        let apps = scheduler.catalog().apps.len();
        let holding = |pinned| WorkerModels {
            pinned,
            ..WorkerModels::default()
        };
        Self {
            starting: false,
            models: std::iter::repeat_with(AppModels::default)
                .take(apps)
                .collect(),
            held: pinned.into_iter().map(holding).collect(),
            weights,
            states,
            name,
            clock,
            scheduler,
            waiters: Waiters::default(),
            meters,
            drift,
            counters,
            wants_evidence,
            readiness,
            evidence,
            recorder,
            watch: None,
            next_request: 0,
            last_arrival: Time::ZERO,
            faults: BTreeMap::new(),
            last_fault: None,
            draining: false,
            drained: Vec::new(),
            stopping: false,
            pace: Pace::default(),
            spare: VecDeque::new(),
            workers,
        }
    }

    /// Asks for the models, before the first turn.
    pub(super) fn begin(&mut self) {
        self.load_all();
    }

    /// Handles these messages, and does what is due.
    pub(super) fn turn(&mut self, messages: &mut VecDeque<Message>) {
        let began = Instant::now();
        let now = self.clock.now();
        for message in messages.drain(..) {
            self.take(now, message);
        }
        self.carry_out();
        self.publish();
        self.pace.took(began.elapsed());
    }

    /// A turn may be taken in passing.
    pub(super) fn is_quick(&self) -> bool {
        self.pace.is_quick()
    }

    /// When something is due although nothing happens.
    pub(super) fn next_wakeup(&self) -> Option<Instant> {
        self.scheduler.next_wakeup().map(|at| self.clock.at(at))
    }

    /// Nothing but [`end`](Self::end) follows.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Room for messages, to be [kept](Self::keep_spare) when they have been handled.
    pub(super) fn spare_messages(&mut self) -> VecDeque<Message> {
        std::mem::take(&mut self.spare)
    }

    pub(super) fn keep_spare(&mut self, spare: VecDeque<Message>) {
        self.spare = spare;
    }

    fn take(&mut self, now: Time, message: Message) {
        match message {
            Message::Submit(call) => self.submit(now, call),
            Message::Cancel(ticket) => {
                for request in self.waiters.abandon(ticket) {
                    self.scheduler.handle(now, Event::Cancelled(request));
                }
            }
            Message::Worker(event) => self.worker_event(now, event),
            Message::Evidence { request, counts } => {
                let event = Event::Evidence { request, counts };
                self.scheduler.handle(now, event);
            }
            Message::Install(policy, record, done) => self.install(now, policy, record, &done),
            Message::RemovePolicy => self.remove_policy(now),
            Message::Watch(watch) => self.watch(now, watch),
            Message::Windows(most, reply) => {
                // An error means that whoever asked has gone; so below.
                let _ = reply.send(self.windows(most));
            }
            Message::Decision(window, reply) => {
                let decision = self.scheduler.history().get(window);
                let _ = reply.send(decision.cloned());
            }
            Message::Status(reply) => {
                let _ = reply.send(self.status());
            }
            Message::Load(app, done) => self.load_app(app, done),
            Message::Unload(app, known) => {
                self.unload_app(app);
                let _ = known.send(());
            }
            Message::Replace(variant, models) => self.replace(variant, &models),
            Message::Drain(done) => {
                self.draining = true;
                self.drained.push(done);
                self.scheduler.handle(now, Event::Drain);
            }
            Message::Stop => self.stopping = true,
        }
    }

    fn submit(&mut self, now: Time, call: Call) {
        if call.reply.is_closed() {
            return; // The client left before it was taken in.
        }
        self.last_arrival = self.last_arrival.max(call.arrival).min(now);
        self.waiters.open(call.ticket, call.rows.len(), call.reply);
        for row in call.rows {
            self.next_request += 1;
            let id = RequestId(self.next_request);
            let arrival = self.last_arrival;
            self.waiters.add(call.ticket, id, arrival, row.tensors);
            self.came(call.app);
            self.scheduler.handle(
                now,
                Event::Arrived(Request {
                    id,
                    app: call.app,
                    arrival,
                    deadline: call.deadline,
                    priority: call.priority,
                    min_accuracy: call.min_accuracy,
                    pinned: call.pinned,
                }),
            );
            if let (Some(evidence), Some(input)) = (&self.evidence, row.peek) {
                evidence.offer(id, call.app, input);
            }
        }
    }

    // ---- workers ----------------------------------------------------------------------

    fn worker_event(&mut self, now: Time, event: WorkerEvent) {
        match event {
            WorkerEvent::Finished(finished) => self.finished(now, finished),
            WorkerEvent::Preloaded(loaded) => self.loaded(now, loaded),
            WorkerEvent::Unloaded(Unloaded {
                worker,
                variant,
                residency,
            }) => {
                self.residency(now, worker, residency);
                self.unloaded(variant);
            }
            WorkerEvent::Down(WorkerDown { worker, reason }) => {
                tracing::error!(pool = self.name, worker = worker.0, reason, "worker down");
                let event = Event::WorkerDown { worker, reason };
                self.scheduler.handle(now, event);
            }
        }
    }

    fn finished(&mut self, now: Time, finished: Finished) {
        let Finished { batch, worker, .. } = finished;
        let output = finished.result.as_ref().ok();
        let ran = self.waiters.finished(batch, output, finished.compute);
        if let Some(ran) = ran {
            let requests = ran.requests.len();
            self.meters.finished(requests);
            self.counters.ran(ran.variant, requests, finished.compute);
            if finished.result.is_ok() {
                self.meters.loaded(worker, ran.variant, finished.load);
                let pool = &self.name;
                self.drift.observe(pool, worker, &ran, finished.compute);
            }
        }
        self.residency(now, worker, finished.residency);
        let repeated = finished
            .result
            .as_ref()
            .is_err_and(ExecuteError::is_repeated);
        let result = finished.result.map(drop).map_err(|error| error.to_string());
        if let Err(reason) = &result
            && !repeated
        {
            tracing::warn!(pool = self.name, worker = worker.0, reason, "batch failed");
        }
        self.scheduler.handle(
            now,
            Event::Finished {
                worker,
                batch,
                result,
            },
        );
    }

    pub(super) fn residency(&mut self, now: Time, worker: WorkerId, residency: Residency) {
        let Some(held) = self.held.get_mut(worker.index()) else {
            return;
        };
        if residency.version < held.holds.version {
            return; // Two threads tell of one worker, and the other one was faster.
        }
        self.meters.residency(worker, &residency);
        let before = std::mem::replace(&mut held.holds, residency);
        let holds = &held.holds;
        // Told with every batch, and mostly the same.
        if (holds.free_bytes, &holds.resident) != (before.free_bytes, &before.resident) {
            let event = Event::Residency {
                worker,
                resident: holds.resident.clone(),
                free_bytes: holds.free_bytes,
            };
            self.scheduler.handle(now, event);
        }
    }

    // ---- commands ---------------------------------------------------------------------

    fn carry_out(&mut self) {
        loop {
            let now = self.clock.now();
            let Some(command) = self.scheduler.poll(now) else {
                return;
            };
            match command {
                Command::Launch(launch) => self.start(now, &launch),
                Command::Reply(reply) => self.reply(now, reply),
                Command::Release { worker, request } => self.release(worker, request),
                Command::Prepare { worker, soon } => {
                    if let Some(worker) = self.workers.get(worker.index()) {
                        worker.prepare(soon);
                    }
                }
                Command::Decided(decision) => self.decided(decision),
                Command::Notice(notice) => self.notice(notice),
            }
        }
    }

    fn start(&mut self, now: Time, launch: &Launch) {
        let app = self
            .scheduler
            .catalog()
            .variant(launch.variant)
            .map(|v| v.app);
        let rows = launch.requests.iter().map(|&request| JobRow {
            request,
            input: match launch.from_stage {
                0 => self.waiters.take_inputs(request),
                _ => None,
            },
        });
        let job = Job {
            batch: launch.batch,
            app: app.unwrap_or_default(),
            variant: launch.variant,
            from_stage: launch.from_stage,
            to_stage: launch.to_stage,
            exit: launch.exit,
            rows: rows.collect(),
            soon: launch.soon.clone(),
        };
        let handed_over = match self.workers.get(launch.worker.index()) {
            Some(worker) => worker.run(job).map_err(|refused| match refused {
                Refused::Full(_) => "the worker's command queue is full",
                Refused::Down(_) => "the worker is down",
            }),
            None => Err("there is no such worker"),
        };
        match handed_over {
            Ok(()) => self.waiters.started(launch),
            Err(reason) => {
                tracing::error!(
                    pool = self.name,
                    worker = launch.worker.0,
                    reason,
                    "batch refused"
                );
                let event = Event::Finished {
                    worker: launch.worker,
                    batch: launch.batch,
                    result: Err(reason.to_owned()),
                };
                self.scheduler.handle(now, event);
            }
        }
    }

    fn release(&self, worker: WorkerId, request: RequestId) {
        let Some(held) = self.workers.get(worker.index()) else {
            return;
        };
        if let Err(Refused::Full(_)) = held.release(request) {
            // The queue has room for a release of everything that may be parked.
            tracing::error!(
                pool = self.name,
                worker = worker.0,
                "release refused: queue full"
            );
        }
    }

    // ---- looking in -------------------------------------------------------------------

    fn publish(&mut self) {
        let (live, pending) = (self.scheduler.live(), self.scheduler.pending());
        let running = self.waiters.running();
        let queued = live.saturating_sub(pending + running);
        let imbalance = self.scheduler.imbalance();
        self.meters.depth(pending, queued, running, imbalance);
        if self.draining && live == 0 {
            for done in self.drained.drain(..) {
                let _ = done.send(());
            }
        }
    }

    fn status(&self) -> PoolStatus {
        let ledger = self.scheduler.ledger();
        let named = |(name, count): (&&str, &u64)| ((*name).to_owned(), *count);
        PoolStatus {
            pool: self.name.clone(),
            policy: self.scheduler.policy_label().to_string(),
            live: self.scheduler.live(),
            pending: self.scheduler.pending(),
            windows: self.scheduler.windows_opened(),
            accepted: ledger.accepted(),
            ended: ledger.ended(),
            imbalance: self.scheduler.imbalance(),
            outcomes: ledger.by_outcome().iter().map(named).collect(),
            faults: self
                .faults
                .iter()
                .map(|(kind, count)| (kind.label().to_owned(), *count))
                .collect(),
            last_fault: self.last_fault.clone(),
            draining: self.draining,
            apps: self.app_status(),
            workers: self.worker_status(),
        }
    }

    // ---- the end ----------------------------------------------------------------------

    /// What is left inside is ended: every accepted request ends, also now.
    pub(super) fn end(&mut self) {
        let now = self.clock.now();
        self.scheduler.handle(now, Event::Drain);
        for request in self.waiters.all() {
            self.scheduler.handle(now, Event::Cancelled(request));
        }
        self.carry_out();
        self.publish();
        let left = self.scheduler.live();
        if left > 0 || self.scheduler.imbalance() != 0 {
            tracing::error!(pool = self.name, left, "requests were left at the end");
        }
    }
}
