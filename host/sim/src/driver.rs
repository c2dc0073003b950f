//! The driver in virtual time: pops what happens next, tells the scheduler, carries out what
//! it says. Nothing here decides anything.

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::event::{Command, Event, Reply, Run};
use switchyard_core::ids::{AppId, RequestId, WorkerId};
use switchyard_core::policy::Policy;
use switchyard_core::request::Request;
use switchyard_core::time::{Micros, Time};
use switchyard_core::{Scheduler, SchedulerConfig};

use crate::events::{Events, Happening};
use crate::evidence::Neighbours;
use crate::hardware::{Cost, Hardware};
use crate::known::{Rates, Told};
use crate::live::{Live, LiveRequests};
use crate::metrics::{Closing, Meters, Report};
use crate::random::{Purpose, Stream, running_sums, seed_of};
use crate::scenario::{Scenario, SimError};
use crate::source::Sources;

/// Commands of one moment after which the scheduler is taken to be running in circles.
const COMMANDS_MAX: u64 = 10_000_000;

/// Sees what happens, for timelines and checks; every method does nothing by itself.
pub trait Observer {
    /// A batch starts.
    fn ran(&mut self, now: Time, run: &Run, cost: Cost) {
        let _ = (now, run, cost);
    }

    /// A request ends.
    fn ended(&mut self, now: Time, reply: &Reply) {
        let _ = (now, reply);
    }

    /// A window was decided; told where the scenario's scheduler
    /// [tells decisions](SchedulerConfig::tells_decisions).
    fn decided(&mut self, decision: &Arc<Decision>) {
        let _ = decision;
    }
}

/// Sees nothing.
impl Observer for () {}

/// Whoever is lent sees as well.
impl<O: Observer> Observer for &mut O {
    fn ran(&mut self, now: Time, run: &Run, cost: Cost) {
        (**self).ran(now, run, cost);
    }

    fn ended(&mut self, now: Time, reply: &Reply) {
        (**self).ended(now, reply);
    }

    fn decided(&mut self, decision: &Arc<Decision>) {
        (**self).decided(decision);
    }
}

/// One run.
pub(crate) struct Simulation<'a, O> {
    scenario: &'a Scenario,
    catalog: Arc<Catalog>,
    seed: u64,
    observer: O,
    scheduler: Scheduler,
    now: Time,
    events: Events,
    sources: Sources,
    /// Where the policy is told the workload's own rates, if any stream's are known.
    rates: Option<Rates>,
    hardware: Hardware,
    neighbours: Neighbours,
    wants_evidence: bool,
    live: LiveRequests,
    meters: Meters,
    /// Running sums of class frequencies, by app.
    labels: Vec<Vec<f64>>,
    classes: Stream,
    service: Stream,
    arrived: u64,
    sources_open: usize,
    last_arrival: Time,
    abandoned: Option<u64>,
}

// === impl Simulation ===

impl<'a, O: Observer> Simulation<'a, O> {
    pub(crate) fn try_new(
        scenario: &'a Scenario,
        policy: Box<dyn Policy>,
        seed: u64,
        observer: O,
    ) -> Result<Self, SimError> {
        let catalog = Arc::clone(&scenario.catalog);
        scenario.service.validate()?;
        let config = SchedulerConfig {
            seed: seed_of(seed, Purpose::Routes, 0),
            ..scenario.scheduler.clone()
        };
        let scheduler = Scheduler::try_new(Arc::clone(&catalog), config)?;
        let sources = Sources::try_new(&scenario.workload, &catalog, seed)?;
        let labels = scenario.class_shares()?.into_iter();
        let labels = labels.map(|shares| running_sums(shares.iter().copied()));
        let mut made = Self {
            scheduler,
            now: Time::ZERO,
            events: Events::default(),
            hardware: Hardware::new(&catalog, scenario.service.clone()),
            neighbours: Neighbours::new(&catalog, scenario.evidence, seed),
            wants_evidence: policy.description().wants.evidence,
            live: LiveRequests::default(),
            meters: Meters::new(&catalog, sources.phases.len()),
            labels: labels.collect(),
            classes: Stream::new(seed, Purpose::Labels, 0),
            service: Stream::new(seed, Purpose::Service, 0),
            arrived: 0,
            sources_open: sources.sources.len(),
            last_arrival: Time::ZERO,
            abandoned: None,
            scenario,
            catalog,
            seed,
            observer,
            rates: None,
            sources,
        };
        made.begin(policy);
        Ok(made)
    }

    fn begin(&mut self, policy: Box<dyn Policy>) {
        if self.scenario.preload {
            self.hardware.preload(&self.catalog);
            for worker in (0..self.catalog.workers.len() as u32).map(WorkerId) {
                if let Some(event) = self.hardware.residency(worker) {
                    self.scheduler.handle(self.now, event);
                }
            }
        }
        let policy = match self.sources.known_rates(self.now, self.catalog.apps.len()) {
            Some(_) => {
                let rates = self.rates.insert(Rates::default());
                Box::new(Told::new(policy, rates.clone()))
            }
            None => policy,
        };
        self.scheduler
            .handle(self.now, Event::PolicyChanged(policy));
        for source in 0..self.sources.sources.len() {
            self.schedule_arrival(source as u32);
        }
    }

    /// Runs to the end of the last request.
    pub(crate) fn run(mut self) -> Result<Report, SimError> {
        let policy = self.scheduler.policy_label().to_string();
        self.carry_out()?;
        while !self.is_over() {
            match self.next_time() {
                Some(at) => self.now = self.now.max(at),
                None => self.abandon()?,
            }
            self.happen_due();
            self.carry_out()?;
        }
        let closing = Closing {
            policy,
            seed: self.seed,
            simulated: self.now.since(Time::ZERO),
            windows: self.scheduler.windows_opened(),
            abandoned: self.abandoned.unwrap_or(0),
            phases: &self.sources.phases,
            ledger: self.scheduler.ledger().by_outcome(),
        };
        let report = self.meters.report(closing, &self.catalog);
        if report.total.ended() != self.arrived {
            let what = format!("{} arrived, {} ended", self.arrived, report.total.ended());
            return Err(SimError::Invariant {
                at_us: self.now.0,
                seed: self.seed,
                what,
            });
        }
        Ok(report)
    }

    // ---- for who decides from outside -------------------------------------------------

    /// Runs to this moment, what happens then included, but opens no window then. The policy
    /// must ask for none earlier than that.
    pub(crate) fn run_to(&mut self, at: Time) -> Result<(), SimError> {
        self.carry_out()?;
        while let Some(next) = self.next_time().filter(|next| *next < at) {
            self.now = self.now.max(next);
            self.happen_due();
            self.carry_out()?;
        }
        self.now = at;
        self.happen_due();
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

    /// The phase of a stream and when it began.
    pub(crate) fn phase(&self, stream: usize) -> Option<(usize, Time)> {
        let source = self.sources.sources.get(stream)?;
        Some(source.phase_at(self.now))
    }

    fn is_over(&self) -> bool {
        self.sources_open == 0 && self.scheduler.live() == 0
    }

    /// The next moment at which anything happens; none when nothing would, although requests
    /// are left, or not before the time to finish is over.
    fn next_time(&self) -> Option<Time> {
        let next = match (self.events.next_time(), self.scheduler.next_wakeup()) {
            (Some(event), Some(wake)) => event.min(wake),
            (event, wake) => event.or(wake)?,
        };
        let limit = self.last_arrival + self.scenario.drain_max;
        let draining = self.sources_open == 0 && self.abandoned.is_none();
        (!draining || next <= limit).then_some(next)
    }

    /// The policy's time to finish is over: the fallback serves what it left.
    fn abandon(&mut self) -> Result<(), SimError> {
        if self.abandoned.is_some() {
            let left = self.scheduler.live();
            return Err(self.broken(format!("{left} requests are left and nothing happens")));
        }
        self.abandoned = Some(self.scheduler.live() as u64);
        self.wants_evidence = false;
        self.scheduler.handle(self.now, Event::PolicyRemoved);
        Ok(())
    }

    // ---- what happens -----------------------------------------------------------------

    fn happen_due(&mut self) {
        while let Some(happening) = self.events.pop_due(self.now) {
            self.happen(happening);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrival { source, phase } => {
                self.arrive(source, phase);
                self.schedule_arrival(source);
            }
            Happening::Evidence {
                request,
                app,
                label,
            } => {
                let counts = self
                    .neighbours
                    .count(app.index(), label as usize, &self.catalog);
                if let Some(counts) = counts {
                    let event = Event::Evidence { request, counts };
                    self.scheduler.handle(self.now, event);
                }
            }
            Happening::Loaded(worker) => {
                let end = self.hardware.loaded(self.now, worker, &self.catalog);
                self.expect_load(worker, end);
                if let Some(event) = self.hardware.residency(worker) {
                    self.scheduler.handle(self.now, event);
                }
            }
            Happening::Finished(worker) => {
                // As the live driver tells it: what is resident first.
                if let Some(event) = self.hardware.residency(worker) {
                    self.scheduler.handle(self.now, event);
                }
                if let Some(batch) = self.hardware.finish(worker) {
                    let event = Event::Finished {
                        worker,
                        batch,
                        result: Ok(()),
                    };
                    self.scheduler.handle(self.now, event);
                }
            }
        }
    }

    fn schedule_arrival(&mut self, source: u32) {
        let next = self.sources.sources[source as usize].next();
        let end = Time::ZERO + self.scenario.duration;
        // Several sources may each have one under way beyond the limit; `arrive` stops those.
        let open = self.arrived < self.scenario.requests_max;
        match next.filter(|arrival| open && arrival.at < end) {
            Some(arrival) => {
                let phase = arrival.phase;
                self.events
                    .push(arrival.at, Happening::Arrival { source, phase });
            }
            None => self.sources_open -= 1,
        }
    }

    fn arrive(&mut self, source: u32, phase: u32) {
        if self.arrived >= self.scenario.requests_max {
            return;
        }
        let drawn = &mut self.sources.sources[source as usize];
        let (app, deadline) = drawn.request(&self.catalog);
        let label = self.classes.pick(&self.labels[app.index()]) as u32;
        let id = self.live.insert(Live {
            deadline,
            label,
            phase,
            hardness: self.classes.uniform(),
            parked: None,
        });
        self.arrived += 1;
        self.last_arrival = self.now;
        self.meters.arrived(app, phase);
        if self.wants_evidence {
            self.expect_evidence(id, app, label);
        }
        self.scheduler.handle(
            self.now,
            Event::Arrived(Request {
                id,
                app,
                arrival: self.now,
                deadline: self.now + deadline,
                priority: 0,
                min_accuracy: 0.0,
                pinned: None,
            }),
        );
    }

    fn expect_evidence(&mut self, request: RequestId, app: AppId, label: u32) {
        if self.catalog.apps[app.index()].sneakpeek.is_none() {
            return;
        }
        let happening = Happening::Evidence {
            request,
            app,
            label,
        };
        self.events
            .push(self.now + self.neighbours.delay(), happening);
    }

    fn expect_load(&mut self, worker: WorkerId, end: Option<Time>) {
        if let Some(end) = end {
            self.events.push(end, Happening::Loaded(worker));
        }
    }

    // ---- what the scheduler says ------------------------------------------------------

    fn carry_out(&mut self) -> Result<(), SimError> {
        if let Some(told) = &self.rates
            && let Some(rates) = self.sources.known_rates(self.now, self.catalog.apps.len())
        {
            told.set(&rates);
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
            let what = format!("the ledger is off by {}", self.scheduler.imbalance());
            return Err(self.broken(what));
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) -> Result<(), SimError> {
        match command {
            Command::Run(run) => self.start(&run)?,
            Command::Reply(reply) => self.end(&reply)?,
            Command::Release { worker, request } => {
                let live = self.live.get_mut(request);
                if let Some(live) = live.filter(|live| live.parked == Some(worker)) {
                    live.parked = None;
                }
            }
            Command::Prepare { worker, soon } => {
                let end = self.hardware.prepare(self.now, worker, soon, &self.catalog);
                self.expect_load(worker, end);
            }
            Command::Decided(decision) => self.observer.decided(&decision),
            Command::Notice(notice) => self.meters.noticed(&notice),
        }
        Ok(())
    }

    fn start(&mut self, run: &Run) -> Result<(), SimError> {
        for &id in &run.requests {
            let needed = (run.from_stage > 0).then_some(run.worker);
            let Some(live) = self.live.get_mut(id) else {
                return Err(self.broken(format!("request {} runs after its end", id.0)));
            };
            if live.parked != needed {
                let what = format!("request {}: its activations are elsewhere", id.0);
                return Err(self.broken(what));
            }
            // Nobody may use them while the batch runs, and nobody does: the core moves a
            // running request nowhere.
            live.parked = run.exit.is_none().then_some(run.worker);
        }
        let service = &mut self.service;
        let cost = self.hardware.start(self.now, run, &self.catalog, service)?;
        let end = self.now + (cost.load + cost.service).max(Micros(1));
        self.events.push(end, Happening::Finished(run.worker));
        self.meters.started(run, cost);
        self.observer.ran(self.now, run, cost);
        Ok(())
    }

    fn end(&mut self, reply: &Reply) -> Result<(), SimError> {
        let Some(live) = self.live.remove(reply.request) else {
            return Err(self.broken(format!("request {} ended twice", reply.request.0)));
        };
        self.meters.ended(self.now, &live, reply, &self.catalog);
        self.observer.ended(self.now, reply);
        Ok(())
    }

    fn broken(&self, what: String) -> SimError {
        SimError::Invariant {
            at_us: self.now.0,
            seed: self.seed,
            what,
        }
    }
}
