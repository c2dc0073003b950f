//! A turn of the driver: it handles messages and carries out the commands of the core.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use switchyard_core::ids::{RequestId, VariantId, WorkerId};
use switchyard_core::policy::FaultKind;
use switchyard_core::request::Request;
use switchyard_core::time::Time;
use switchyard_core::{Command, Event, Scheduler};
use switchyard_executor::{ExecuteError, Finished, Residency, Unloaded, WorkerDown, WorkerEvent};
use switchyard_policy::recording::PolicyRecord;
use tokio::sync::oneshot;

use super::combining::Combined;
use super::crew::Crew;
use super::demand::Demand;
use super::drift::Drift;
use super::ends::{end_of, worker_of};
use super::message::{Message, SubmittedCall, Watch};
use super::models::{AppModels, ModelStates, WorkerModels};
use super::pacer::Pacer;
use super::pulse::Pulse;
use super::recent::Recent;
use super::stats::VariantCounters;
use super::status::PoolStatus;
use super::traces::PoolTraces;
use super::waiters::Waiters;
use super::weights::PoolWeights;
use crate::clock::Clock;
use crate::evidence::EvidenceQueue;
use crate::readiness::Readiness;
use crate::recorder::Recorder;
use crate::telemetry::PoolMeters;

/// Owns the scheduler of a pool and the state of its requests.
pub(super) struct Driver {
    pub(super) name: String,
    pub(super) clock: Clock,
    pub(super) scheduler: Scheduler,
    pub(super) waiters: Waiters,
    pub(super) meters: PoolMeters,
    pub(super) traces: Option<PoolTraces>,
    drift: Drift,
    demand: Demand,
    pub(super) recent: Recent,
    pub(super) counters: Arc<VariantCounters>,
    pub(super) wants_evidence: Arc<AtomicBool>,
    pub(super) readiness: Arc<Readiness>,
    evidence: Option<EvidenceQueue>,
    pub(super) recorder: Option<Recorder>,
    /// The policy, as a recording names it.
    pub(super) policy: Option<PolicyRecord>,
    pub(super) watch: Option<Watch>,
    next_request: u64,
    /// Arrivals are stamped by many threads; the core sees them in order.
    last_arrival: Time,
    pub(super) faults: BTreeMap<FaultKind, u64>,
    pub(super) last_fault: Option<String>,
    /// Some of the loads of the start have not ended.
    pub(super) starting: bool,
    /// By app.
    pub(super) models: Vec<AppModels>,
    /// By worker.
    pub(super) held: Vec<WorkerModels>,
    pub(super) weights: PoolWeights,
    pub(super) states: Arc<ModelStates>,
    draining: bool,
    drained: Vec<oneshot::Sender<()>>,
    pub(super) pacer: Pacer,
    pub(super) crew: Crew,
    pulse: Arc<Pulse>,
    /// The fallback served at the last look.
    fallback_served: bool,
}

/// The parts of a driver.
pub(super) struct DriverParts {
    pub(super) name: String,
    pub(super) clock: Clock,
    pub(super) scheduler: Scheduler,
    pub(super) crew: Crew,
    pub(super) pulse: Arc<Pulse>,
    /// By worker: the variants that it never evicts.
    pub(super) pinned: Vec<Vec<VariantId>>,
    pub(super) weights: PoolWeights,
    pub(super) evidence: Option<EvidenceQueue>,
    pub(super) meters: PoolMeters,
    pub(super) traces: Option<PoolTraces>,
    pub(super) drift: Drift,
    pub(super) counters: Arc<VariantCounters>,
    pub(super) wants_evidence: Arc<AtomicBool>,
    pub(super) states: Arc<ModelStates>,
    pub(super) readiness: Arc<Readiness>,
}

impl Combined for Driver {
    type Message = Message;

    fn is_inline(message: &Message) -> bool {
        message.is_inline()
    }

    fn turn(&mut self, messages: &mut VecDeque<Message>) {
        let began = Instant::now();
        let now = self.clock.now();
        self.pulse.begin_turn(now);
        for message in messages.drain(..) {
            self.take(now, message);
        }
        self.carry_out();
        self.publish();
        if let Some(workers) = self.demand.news(now) {
            self.meters.desired(workers);
        }
        self.pulse.end_turn();
        self.pacer.took(began.elapsed());
    }

    fn is_quick(&self) -> bool {
        self.pacer.is_quick()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let next = [self.scheduler.next_wakeup(), self.demand.next_wakeup()];
        let next = next.into_iter().flatten().min();
        next.map(|at| self.clock.at(at))
    }

    /// Ends the requests that are left: every accepted request ends, also now.
    fn end(&mut self) {
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

// === impl Driver ===

impl Driver {
    pub(super) fn new(parts: DriverParts) -> Self {
        let catalog = Arc::clone(parts.scheduler.catalog());
        let apps = catalog.apps.len();
        let holding = |pinned| WorkerModels {
            pinned,
            ..WorkerModels::default()
        };
        Self {
            name: parts.name,
            clock: parts.clock,
            scheduler: parts.scheduler,
            waiters: Waiters::default(),
            meters: parts.meters,
            traces: parts.traces,
            drift: parts.drift,
            demand: Demand::new(parts.clock.now()),
            recent: Recent::new(catalog, parts.clock.now()),
            counters: parts.counters,
            wants_evidence: parts.wants_evidence,
            readiness: parts.readiness,
            evidence: parts.evidence,
            recorder: None,
            policy: None,
            watch: None,
            next_request: 0,
            last_arrival: Time::ZERO,
            faults: BTreeMap::new(),
            last_fault: None,
            starting: false,
            models: std::iter::repeat_with(AppModels::default)
                .take(apps)
                .collect(),
            held: parts.pinned.into_iter().map(holding).collect(),
            weights: parts.weights,
            states: parts.states,
            draining: false,
            drained: Vec::new(),
            pacer: Pacer::default(),
            crew: parts.crew,
            pulse: parts.pulse,
            fallback_served: false,
        }
    }

    /// Asks the workers for the models, before the first turn.
    pub(super) fn begin(&mut self) {
        let workers = self.scheduler.catalog().workers.len() as u32;
        (0..workers).for_each(|worker| self.show_address(WorkerId(worker)));
        self.load_all();
    }

    fn take(&mut self, now: Time, message: Message) {
        match message {
            Message::Submit(submitted) => self.submit(now, submitted),
            Message::Cancel(ticket) => {
                for request in self.waiters.abandon(ticket) {
                    self.scheduler.handle(now, Event::Cancelled(request));
                }
            }
            Message::Worker(start, event) => {
                if self.crew.is_current(worker_of(&event), start) {
                    self.worker_event(now, event);
                }
            }
            Message::Restarted(worker, start, restarted) => {
                self.restarted(now, worker, start, restarted);
            }
            Message::Evidence { request, counts } => {
                let event = Event::Evidence { request, counts };
                self.scheduler.handle(now, event);
            }
            Message::Install(policy, record, done) => {
                self.install(now, Event::PolicyChanged(policy), record, &done);
            }
            Message::Recompiled(policy, record, done) => {
                // One that was taken off meanwhile has no place to take.
                if self.policy.is_some() {
                    self.install(now, Event::PolicyRecompiled(policy), record, &done);
                }
            }
            Message::Record(recorder) => self.record(recorder),
            Message::TakeRecorder(reply) => {
                let _ = reply.send(self.recorder.take());
            }
            Message::RemovePolicy => self.remove_policy(now),
            Message::Watch(watch) => self.watch(now, watch),
            Message::Windows(most, reply) => {
                // An error means that the asking thread has gone; so below.
                let _ = reply.send(self.windows(most));
            }
            Message::Decision(window, reply) => {
                let _ = reply.send(self.scheduler.decision(window));
            }
            Message::DecisionAbout(request, reply) => {
                let _ = reply.send(self.scheduler.decision_about(request));
            }
            Message::Status(reply) => {
                let _ = reply.send(self.status());
            }
            Message::Recent(reply) => {
                let _ = reply.send(self.recent.report(now));
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
        }
    }

    fn submit(&mut self, now: Time, submitted: SubmittedCall) {
        let SubmittedCall {
            ticket,
            call,
            reply,
        } = submitted;
        if reply.is_closed() {
            return; // The client left before the call was accepted.
        }
        let mut trace = match &mut self.traces {
            Some(traces) => traces.open(call.trace, call.deadline, call.rows.len()),
            None => None,
        };
        self.last_arrival = self.last_arrival.max(call.arrival).min(now);
        self.waiters.open(ticket, call.rows.len(), reply);
        for row in call.rows {
            self.next_request += 1;
            let id = RequestId(self.next_request);
            let arrival = self.last_arrival;
            let when = (arrival, call.deadline);
            self.waiters
                .add(ticket, id, when, row.tensors, trace.take());
            self.came(call.app);
            let work_us = self.scheduler.least_work_us(now, call.app, row.cost);
            self.demand.came(now, work_us);
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
                    cost: row.cost,
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
                self.unloaded(worker, variant);
            }
            WorkerEvent::Down(WorkerDown { worker, reason }) => {
                let event = Event::WorkerDown {
                    worker,
                    reason: reason.clone(),
                };
                self.scheduler.handle(now, event);
                self.waiters.forget(worker);
                self.worker_lost(worker, &reason);
            }
            WorkerEvent::Leaving(WorkerDown { worker, reason }) => {
                self.scheduler.handle(now, Event::WorkerLeaving(worker));
                self.worker_leaving(worker, &reason);
            }
        }
    }

    fn finished(&mut self, now: Time, finished: Finished) {
        let Finished { batch, worker, .. } = finished;
        let output = finished.result.as_ref().ok();
        let ran = self.waiters.finished(batch, output, finished.compute);
        if let Some(ran) = ran {
            if let Some(traces) = &self.traces {
                let took = (finished.load, finished.compute);
                traces.finished(&mut self.waiters, batch, &ran.requests, now, took);
            }
            let requests = ran.requests.len();
            self.meters.finished(worker, requests, finished.compute);
            self.recent.ran(now, ran.kind(), requests, finished.compute);
            self.counters.ran(ran.variant, requests, finished.compute);
            if finished.result.is_ok() {
                self.meters.loaded(worker, ran.variant, finished.load);
                self.drift.observe(now, worker, &ran, finished.compute);
            }
        }
        self.residency(now, worker, finished.residency);
        let repeated = finished
            .result
            .as_ref()
            .is_err_and(ExecuteError::is_repeated);
        if let Err(error) = &finished.result
            && !repeated
        {
            let reason = error.to_string();
            tracing::warn!(pool = self.name, worker = worker.0, reason, "batch failed");
        }
        let end = end_of(finished.result);
        let event = Event::Finished { worker, batch, end };
        self.scheduler.handle(now, event);
    }

    pub(super) fn residency(&mut self, now: Time, worker: WorkerId, mut residency: Residency) {
        let Some(held) = self.held.get_mut(worker.index()) else {
            return;
        };
        residency.counts += held.earlier;
        if residency.version < held.holds.version {
            return; // A worker has two reporting threads, and the other one was faster.
        }
        self.meters.residency(worker, &residency);
        let before = std::mem::replace(&mut held.holds, residency);
        let holds = &held.holds;
        // Reported with every batch, and mostly the same.
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
            let command = self.scheduler.poll(now);
            if let Some(traces) = &mut self.traces {
                traces.polled(&self.scheduler, self.clock);
            }
            let Some(command) = command else {
                return;
            };
            match command {
                Command::Launch(launch) => self.start(now, &launch),
                Command::Reply(reply) => self.reply(now, reply),
                Command::Release { worker, request } => self.release(worker, request),
                Command::Prepare { worker, soon } => {
                    if let Some(worker) = self.crew.get(worker) {
                        worker.prepare(soon);
                    }
                }
                Command::Decided(decision) => self.decided(decision),
                Command::Notice(notice) => self.notice(notice),
            }
        }
    }

    // ---- status -------------------------------------------------------------------

    fn publish(&mut self) {
        let (live, pending) = (self.scheduler.live(), self.scheduler.pending());
        let running = self.waiters.running();
        let queued = live.saturating_sub(pending + running);
        let imbalance = self.scheduler.imbalance();
        self.meters.depth(pending, queued, running, imbalance);
        let fallback_serves = self.scheduler.fallback_serves();
        if fallback_serves != self.fallback_served {
            self.fallback_served = fallback_serves;
            self.meters.fallback_serves(fallback_serves);
        }
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
            slowest_turn_us: self.pacer.slowest().as_micros() as u64,
            draining: self.draining,
            apps: self.app_status(),
            failed_variants: self.failed_variants(),
            workers: self.worker_status(),
        }
    }
}
