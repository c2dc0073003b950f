//! The driver in virtual time: takes the next event, tells the scheduler, carries out its commands.
//! It takes no decision.

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::{BatchEnd, Command, Event, Launch, Notice, Reply};
use switchyard_core::ids::{AppId, RequestId, WorkerId};
use switchyard_core::policy::Policy;
use switchyard_core::time::{Micros, Time};
use switchyard_core::{Scheduler, SchedulerConfig};

use crate::clients::{ArrivedRequest, Clients};
use crate::events::{EventHeap, SimEvent};
use crate::evidence::NeighbourVotes;
use crate::hardware::Hardware;
use crate::known_rates::{KnownRates, RateInformed};
use crate::links::{Deaths, Links};
use crate::metrics::{Closing, Meters, Report};
use crate::observer::Observer;
use crate::random::{Purpose, Stream, seed_of};
use crate::scenario::{Scenario, SimError};
use crate::source::SourceId;

/// Commands at one time after which the scheduler counts as running in circles.
const COMMANDS_MAX: u64 = 10_000_000;

/// One run.
pub(crate) struct Simulation<O> {
    catalog: Arc<Catalog>,
    seed: u64,
    observer: O,
    scheduler: Scheduler,
    now: Time,
    events: EventHeap,
    clients: Clients,
    /// Present if a stream's rates are known: windows show them.
    rates: Option<KnownRates>,
    hardware: Hardware,
    links: Links,
    /// Deaths at random, if the scenario has them.
    deaths: Option<Deaths>,
    neighbours: NeighbourVotes,
    wants_evidence: bool,
    meters: Meters,
    service: Stream,
    failures: Stream,
    /// Share of the batches that fail.
    failing_batches: f64,
    /// The policy's time to finish after the last arrival.
    drain_max: Micros,
    /// Requests left when the policy's time was over, once it is.
    abandoned: Option<u64>,
}

// === impl Simulation ===

impl<O: Observer> Simulation<O> {
    pub(crate) fn try_new(
        scenario: &Scenario,
        policy: Box<dyn Policy>,
        seed: u64,
        observer: O,
    ) -> Result<Self, SimError> {
        let catalog = Arc::clone(&scenario.catalog);
        scenario.service.validate()?;
        scenario.check_fleet()?;
        let workers = catalog.workers.len();
        let config = SchedulerConfig {
            seed: seed_of(seed, Purpose::Routes, 0),
            ..scenario.scheduler.clone()
        };
        let scheduler = Scheduler::try_new(Arc::clone(&catalog), config)?;
        let clients = Clients::try_new(scenario, seed)?;
        let mut made = Self {
            scheduler,
            now: Time::ZERO,
            events: EventHeap::default(),
            hardware: Hardware::new(&catalog, scenario.service.clone()),
            links: Links::new(scenario.links, workers, seed),
            deaths: (scenario.deaths).map(|means| Deaths::new(means, workers, seed)),
            neighbours: NeighbourVotes::new(&catalog, scenario.evidence, seed)
                .with_recorded(&scenario.votes),
            wants_evidence: policy.description().wants.evidence,
            meters: Meters::new(&catalog, clients.sources().phases().len())
                .with_wire(scenario.wire),
            service: Stream::new(seed, Purpose::Service, 0),
            failures: Stream::new(seed, Purpose::Failures, 0),
            failing_batches: scenario.failing_batches,
            drain_max: scenario.drain_max,
            abandoned: None,
            catalog,
            seed,
            observer,
            rates: None,
            clients,
        };
        made.begin(scenario, policy);
        Ok(made)
    }

    fn begin(&mut self, scenario: &Scenario, policy: Box<dyn Policy>) {
        if scenario.preload {
            self.hardware.preload(&self.catalog);
            for worker in (0..self.catalog.workers.len() as u32).map(WorkerId) {
                self.tell_residency(worker);
            }
        }
        let policy = match self.known_rates() {
            Some(_) => {
                let rates = self.rates.insert(KnownRates::default());
                Box::new(RateInformed::new(policy, rates.clone()))
            }
            None => policy,
        };
        self.scheduler
            .handle(self.now, Event::PolicyChanged(policy));
        for source in self.clients.sources().ids() {
            self.schedule_arrival(source);
        }
        for outage in &scenario.outages {
            self.events.push(outage.from, SimEvent::Down(outage.worker));
            self.events.push(outage.to, SimEvent::Up(outage.worker));
        }
        for worker in (0..self.catalog.workers.len() as u32).map(WorkerId) {
            self.expect_death(worker);
        }
    }

    fn known_rates(&self) -> Option<Vec<Option<f64>>> {
        let apps = self.catalog.apps.len();
        self.clients.sources().known_rates(self.now, apps)
    }

    /// Runs to the end of the last request.
    pub(crate) fn run(mut self) -> Result<Report, SimError> {
        let policy = self.scheduler.policy_label().to_string();
        self.carry_out()?;
        while !self.is_over() {
            match self.next_time()? {
                Some(at) => self.now = self.now.max(at),
                None => self.abandon()?,
            }
            self.handle_due_events();
            self.carry_out()?;
        }
        let closing = Closing {
            policy,
            seed: self.seed,
            simulated: self.now.since(Time::ZERO),
            windows: self.scheduler.windows_opened(),
            abandoned: self.abandoned.unwrap_or(0),
            phases: self.clients.sources().phases(),
            ledger: self.scheduler.ledger().by_outcome(),
        };
        let report = closing.report(self.meters, &self.catalog);
        let arrived = self.clients.counted();
        if report.total.ended() != arrived {
            return Err(SimError::Invariant {
                at_us: self.now.0,
                seed: self.seed,
                violation: format!("{arrived} arrived, {} ended", report.total.ended()),
            });
        }
        Ok(report)
    }

    // ---- decided from outside -------------------------------------------------

    /// Runs to `at`, events at that time included, but opens no window then. The policy must ask for
    /// no earlier window.
    pub(crate) fn run_to(&mut self, at: Time) -> Result<(), SimError> {
        self.carry_out()?;
        while let Some(next) = self.next_time()?.filter(|next| *next < at) {
            self.now = self.now.max(next);
            self.handle_due_events();
            self.carry_out()?;
        }
        self.now = at;
        self.handle_due_events();
        while let Some(command) = self.scheduler.poll_between_windows(at) {
            self.obey(command)?;
        }
        Ok(())
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn scheduler(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    pub(crate) fn observer(&self) -> &O {
        &self.observer
    }

    pub(crate) fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The phase of a source, and its beginning.
    pub(crate) fn phase(&self, source: SourceId) -> Option<(usize, Time)> {
        let source = self.clients.sources().get(source)?;
        Some(source.phase_at(self.now))
    }

    fn is_over(&self) -> bool {
        self.clients.are_done() && self.scheduler.live() == 0
    }

    /// The time of the next event or wake-up. None if requests are left and nothing follows, or
    /// nothing before the policy's time to finish is over.
    ///
    /// # Errors
    /// The scheduler has nothing left to do and asks for a poll that is not later, again and again.
    fn next_time(&self) -> Result<Option<Time>, SimError> {
        let wake = self.scheduler.next_wakeup();
        if let Some(at) = wake.filter(|&at| at <= self.now) {
            let at = at.0;
            let violation = format!("nothing is left to do, and the next wake-up is at {at} us");
            return Err(self.broken(violation));
        }
        let next = [self.events.next_time(), wake].into_iter().flatten().min();
        let limit = self.clients.last_arrival() + self.drain_max;
        let draining = self.clients.are_done() && self.abandoned.is_none();
        Ok(next.filter(|&next| !draining || next <= limit))
    }

    /// The policy's time to finish is over: the native fallback serves the rest.
    fn abandon(&mut self) -> Result<(), SimError> {
        let left = self.scheduler.live();
        if self.abandoned.is_some() {
            return Err(self.broken(format!("{left} requests are left and no event follows")));
        }
        self.abandoned = Some(left as u64);
        self.wants_evidence = false;
        self.scheduler.handle(self.now, Event::PolicyRemoved);
        Ok(())
    }

    // ---- events ---------------------------------------------------------------

    fn handle_due_events(&mut self) {
        while let Some(event) = self.events.pop_due(self.now) {
            self.handle(event);
        }
    }

    fn handle(&mut self, event: SimEvent) {
        match event {
            SimEvent::Arrival { source, phase } => {
                self.arrive(source, phase);
                self.schedule_arrival(source);
            }
            SimEvent::Evidence {
                request,
                app,
                label,
            } => {
                let counts = self.neighbours.count(app, label as usize, &self.catalog);
                if let Some(counts) = counts {
                    let event = Event::Evidence { request, counts };
                    self.scheduler.handle(self.now, event);
                }
            }
            SimEvent::Loaded(worker) => {
                let end = self.hardware.loaded(self.now, worker, &self.catalog);
                self.expect_load(worker, end);
                self.tell_residency(worker);
            }
            SimEvent::Finished(worker, batch) => {
                if !self.hardware.finish(worker, batch) {
                    return;
                }
                // Before the batch's end, like the live driver.
                self.tell_residency(worker);
                let end = self.end_of_batch();
                let event = Event::Finished { worker, batch, end };
                self.scheduler.handle(self.now, event);
            }
            SimEvent::Down(worker) => self.lose(worker),
            SimEvent::Up(worker) => self.scheduler.handle(self.now, Event::WorkerUp(worker)),
            SimEvent::Dies(worker) => {
                self.lose(worker);
                if let Some(deaths) = &mut self.deaths {
                    let back = self.now + deaths.away(worker);
                    self.events.push(back, SimEvent::Returns(worker));
                }
            }
            SimEvent::Returns(worker) => {
                self.scheduler.handle(self.now, Event::WorkerUp(worker));
                self.expect_death(worker);
            }
        }
    }

    fn lose(&mut self, worker: WorkerId) {
        self.hardware.lose(worker, &self.catalog);
        self.links.reset(worker);
        self.clients.live.unpark(worker);
        self.observer.lost(self.now, worker);
        let reason = "the worker is away".to_owned();
        let event = Event::WorkerDown { worker, reason };
        self.scheduler.handle(self.now, event);
    }

    /// The worker's next death at random. After the last arrival there is none, so that the run ends.
    fn expect_death(&mut self, worker: WorkerId) {
        let Some(deaths) = &mut self.deaths else {
            return;
        };
        if !self.clients.are_done() {
            let at = self.now + deaths.life(worker);
            self.events.push(at, SimEvent::Dies(worker));
        }
    }

    fn end_of_batch(&mut self) -> BatchEnd {
        let share = self.failing_batches;
        match share > 0.0 && self.failures.uniform() < share {
            false => BatchEnd::Done,
            true => BatchEnd::Failed {
                reason: "the scenario has it fail".to_owned(),
                repeatable: true,
            },
        }
    }

    fn tell_residency(&mut self, worker: WorkerId) {
        if let Some(event) = self.hardware.residency(worker) {
            self.scheduler.handle(self.now, event);
        }
    }

    fn schedule_arrival(&mut self, source: SourceId) {
        if let Some(next) = self.clients.next_arrival(source) {
            let phase = next.phase;
            let event = SimEvent::Arrival { source, phase };
            self.events.push(next.at, event);
        }
    }

    fn arrive(&mut self, source: SourceId, phase: u32) {
        let arrived = self.clients.arrive(self.now, source, phase, &self.catalog);
        let Some(ArrivedRequest {
            request,
            label,
            is_counted,
        }) = arrived
        else {
            return;
        };
        if is_counted {
            self.meters.arrived(request.app, phase);
        }
        if self.wants_evidence {
            self.expect_evidence(request.id, request.app, label);
        }
        self.scheduler.handle(self.now, Event::Arrived(request));
    }

    fn expect_evidence(&mut self, request: RequestId, app: AppId, label: u32) {
        if self.catalog.apps[app.index()].sneakpeek.is_none() {
            return;
        }
        let event = SimEvent::Evidence {
            request,
            app,
            label,
        };
        self.events.push(self.now + self.neighbours.delay(), event);
    }

    fn expect_load(&mut self, worker: WorkerId, end: Option<Time>) {
        if let Some(end) = end {
            self.events.push(end, SimEvent::Loaded(worker));
        }
    }

    // ---- commands -------------------------------------------------------------

    fn carry_out(&mut self) -> Result<(), SimError> {
        if let (Some(shown), Some(rates)) = (&self.rates, self.known_rates()) {
            shown.set(&rates);
        }
        let mut commands = 0;
        while let Some(command) = self.scheduler.poll(self.now) {
            commands += 1;
            if commands > COMMANDS_MAX {
                return Err(self.broken("the scheduler never comes to rest".to_owned()));
            }
            self.obey(command)?;
        }
        if self.scheduler.imbalance() != 0 {
            let violation = format!("the ledger is off by {}", self.scheduler.imbalance());
            return Err(self.broken(violation));
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) -> Result<(), SimError> {
        match command {
            Command::Launch(launch) => self.start(&launch)?,
            Command::Reply(reply) => self.end(&reply)?,
            Command::Release { worker, request } => {
                let live = self.clients.live.get_mut(request);
                if let Some(live) = live.filter(|live| live.parked == Some(worker)) {
                    live.parked = None;
                }
            }
            Command::Prepare { worker, soon } => {
                let end = self.hardware.prepare(self.now, worker, soon, &self.catalog);
                self.expect_load(worker, end);
            }
            Command::Decided(decision) => self.observer.decided(&decision),
            Command::Notice(notice) => {
                if let Notice::WorkerOverdue { worker, .. } = notice {
                    self.clients.live.unpark(worker);
                }
                self.meters.noticed(&notice);
                self.observer.noticed(&notice);
            }
        }
        Ok(())
    }

    fn start(&mut self, launch: &Launch) -> Result<(), SimError> {
        for &id in &launch.requests {
            // From stage 0 it needs none: those of a batch that failed or was lost are forgotten.
            let is_continued = launch.from_stage > 0;
            let Some(live) = self.clients.live.get_mut(id) else {
                return Err(self.broken(format!("request {} runs after its end", id.0)));
            };
            if is_continued && live.parked != Some(launch.worker) {
                let violation = format!("request {}: its activations are on another worker", id.0);
                return Err(self.broken(violation));
            }
            // Set before the batch ends: the core moves no running request.
            live.parked = launch.exit.is_none().then_some(launch.worker);
        }
        let service = &mut self.service;
        let arrives = self.links.there(launch.worker, self.now);
        let cost = self
            .hardware
            .start(self.now, arrives, launch, &self.catalog, service)?;
        let end = self.now + (cost.waits + cost.load + cost.service).max(Micros(1));
        let end = self.links.back(launch.worker, end);
        self.events
            .push(end, SimEvent::Finished(launch.worker, launch.batch));
        self.meters.started(launch, cost);
        self.observer.ran(self.now, launch, cost);
        Ok(())
    }

    fn end(&mut self, reply: &Reply) -> Result<(), SimError> {
        let Some(live) = self.clients.live.remove(reply.request) else {
            return Err(self.broken(format!("request {} ended twice", reply.request.0)));
        };
        if live.is_counted {
            self.meters.ended(self.now, &live, reply, &self.catalog);
        }
        self.observer.ended(self.now, reply);
        Ok(())
    }

    fn broken(&self, violation: String) -> SimError {
        SimError::Invariant {
            at_us: self.now.0,
            seed: self.seed,
            violation,
        }
    }
}
