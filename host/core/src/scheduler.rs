//! Joins the parts: events and the time in, commands out.
//!
//! The driver's loop:
//! ```text
//! for event in what_happened { scheduler.handle(now, event) }
//! while let Some(command) = scheduler.poll(now) { carry_out(command) }
//! wait_until(next_event or scheduler.next_wakeup())
//! ```
//! Events of one moment are handled before the first poll, so that they share a window.

mod arrivals;
mod batches;
mod windows;

use std::collections::VecDeque;
use std::sync::Arc;

use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::catalog::{Catalog, CatalogError};
use crate::decision::History;
use crate::event::{Command, Event, Notice, Ran, Reply};
use crate::guard::{FaultLimit, Faulted, Guard, HOST_LABEL};
use crate::ids::{BatchId, RequestId, WorkerId};
use crate::ledger::Ledger;
use crate::load::LoadMonitor;
use crate::plan::checked::Scratch;
use crate::policy::{Policy, Sights};
use crate::request::{Outcome, Rejection};
use crate::route::Routes;
use crate::table::{State, Table};
use crate::time::{Micros, Time};
use crate::trigger::Trigger;
use crate::window::{Completion, End, Window};
use crate::worker::{Decided, Worker, WorkerSet};

/// Completions kept for a policy between two of its windows; older ones are forgotten.
pub const COMPLETIONS_MAX: usize = 65_536;

/// Bounds and seed of a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// Seed of the draws over routes.
    pub seed: u64,
    /// Requests that may be pending; one more is rejected.
    pub pending_max: usize,
    /// When a policy that faults is taken off.
    pub fault_limit: FaultLimit,
    /// How long past its deadline a request may stay pending beside an idle worker before
    /// the fallback serves it and the policy is charged with a fault.
    pub patience: Micros,
    /// Decisions kept for explanations and for trying new policies on.
    pub history: usize,
    /// Every decision comes as a [`Command::Decided`], for whoever records them.
    pub tells_decisions: bool,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            pending_max: 4_096,
            fault_limit: FaultLimit::default(),
            patience: Micros::from_millis(1_000),
            history: 64,
            tells_decisions: false,
        }
    }
}

/// The scheduling state machine of one pool.
pub struct Scheduler {
    config: SchedulerConfig,
    catalog: Arc<Catalog>,
    table: Table,
    workers: WorkerSet,
    routes: Routes,
    load: LoadMonitor,
    ledger: Ledger,
    guard: Guard,
    trigger: Trigger,
    /// Opens windows for the fallback while the active policy fails.
    rescue: Trigger,
    history: History,
    /// What windows show beside what the policy wants, for whoever looks at decisions.
    watched: Option<Sights>,
    random: Pcg64,
    windows_opened: u64,
    /// When the last starving request was seen to.
    relieved: Time,
    batches_made: u64,
    draining: bool,
    completions: VecDeque<Completion>,
    out: VecDeque<Command>,
    /// Workers to which something happened that may let them start:
    /// [`poll`](Self::poll) need not look at every worker each time to find out.
    may_start: Vec<usize>,
    scratch: Scratch,
    faulted: Vec<Faulted>,
    /// Decides for pinned and routed requests.
    host: Arc<str>,
}

// === impl Scheduler ===

impl Scheduler {
    /// A scheduler that serves with the native fallback until a policy is installed.
    ///
    /// # Errors
    /// The catalog does not hold together; names the field.
    pub fn try_new(catalog: Arc<Catalog>, config: SchedulerConfig) -> Result<Self, CatalogError> {
        catalog.validate()?;
        let mut guard = Guard::new(config.fault_limit);
        // Only the native fallback is there yet, and it takes any valid catalog.
        guard.configure(&catalog);
        Ok(Self {
            table: Table::default(),
            workers: WorkerSet::new(&catalog.workers),
            routes: Routes::new(catalog.apps.len()),
            load: LoadMonitor::new(catalog.apps.len()),
            ledger: Ledger::default(),
            guard,
            trigger: Trigger::default(),
            rescue: Trigger::default(),
            history: History::new(config.history),
            watched: None,
            random: Pcg64::seed_from_u64(config.seed),
            windows_opened: 0,
            relieved: Time::ZERO,
            batches_made: 0,
            draining: false,
            completions: VecDeque::new(),
            out: VecDeque::new(),
            may_start: Vec::new(),
            scratch: Scratch::default(),
            faulted: Vec::new(),
            host: Arc::from(HOST_LABEL),
            catalog,
            config,
        })
    }

    /// Takes an event in. Call [`poll`](Self::poll) until it is empty afterwards.
    pub fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Arrived(request) => self.handle_arrival(now, request),
            Event::Evidence { request, counts } => self.handle_evidence(request, counts),
            Event::Cancelled(request) => self.handle_cancelled(now, request),
            Event::Finished {
                worker,
                batch,
                result,
            } => self.handle_finished(now, worker, batch, result),
            Event::Residency {
                worker,
                resident,
                free_bytes,
            } => {
                if let Some(worker) = self.workers.get_mut(worker.index()) {
                    worker.resident = resident;
                    worker.free_bytes = free_bytes;
                }
            }
            Event::WorkerDown { worker, reason } => self.handle_worker_down(now, worker, &reason),
            Event::WorkerUp(worker) => self.handle_worker_up(worker),
            Event::PolicyChanged(policy) => self.handle_policy_changed(now, policy),
            Event::PolicyRemoved => self.handle_policy_removed(now),
            Event::CatalogChanged(catalog) => self.handle_catalog_changed(now, catalog),
            Event::Watched(sights) => self.watched = sights,
            Event::Drain => self.draining = true,
        }
    }

    /// The next thing to do, opening a window when one is due. None: nothing until the next
    /// event or [`next_wakeup`](Self::next_wakeup).
    pub fn poll(&mut self, now: Time) -> Option<Command> {
        loop {
            if let Some(command) = self.out.pop_front() {
                return Some(command);
            }
            self.drop_expired(now);
            self.start_workers(now);
            if !self.open_window(now) && self.out.is_empty() {
                return None;
            }
        }
    }

    /// Does what is due but opens no window: what [`look`](Self::look) shows afterwards is what
    /// a policy that was asked now would see. For drivers in which somebody outside decides;
    /// the others [`poll`](Self::poll). None: nothing is left to do.
    pub fn poll_between_windows(&mut self, now: Time) -> Option<Command> {
        self.drop_expired(now);
        self.start_workers(now);
        self.out.pop_front()
    }

    /// The yard as the next window would show it, into a window without its number, its causes
    /// and its completions. Asks nobody and changes nothing.
    pub fn look(&mut self, now: Time, wants: Sights, window: &mut Window) {
        window.clear();
        self.see_yard(now, wants, window);
    }

    /// When to poll again even if nothing happens.
    pub fn next_wakeup(&self) -> Option<Time> {
        let expiry = self.table.next_expiry().map(|at| at + Micros(1));
        let starving = self.starving_at().map(|(at, _)| at);
        [self.trigger.next_time(), expiry, starving]
            .into_iter()
            .flatten()
            .min()
    }

    /// What there is to choose from.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The books.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Accepted minus ended minus live requests: 0, always.
    pub fn imbalance(&self) -> i64 {
        self.ledger.imbalance(self.table.live())
    }

    /// Requests that have not ended.
    pub fn live(&self) -> usize {
        self.table.live()
    }

    /// Requests that wait for a decision.
    pub fn pending(&self) -> usize {
        self.table.pending().len()
    }

    /// Windows opened so far.
    pub fn windows_opened(&self) -> u64 {
        self.windows_opened
    }

    /// Label of whoever is asked first.
    pub fn policy_label(&self) -> Arc<str> {
        self.guard.label()
    }

    /// The last decisions.
    pub fn history(&self) -> &History {
        &self.history
    }

    fn handle_policy_changed(&mut self, now: Time, policy: Box<dyn Policy>) {
        let from = self.guard.label();
        let state_lost = self.guard.install(policy).err();
        self.policy_replaced(now);
        self.out.push_back(Command::Notice(Notice::PolicySwitched {
            from,
            to: self.guard.label(),
            state_lost,
        }));
    }

    fn handle_policy_removed(&mut self, now: Time) {
        let from = self.guard.label();
        self.guard.remove();
        self.policy_replaced(now);
        self.out
            .push_back(Command::Notice(Notice::PolicyRemoved { from }));
    }

    /// Standing orders of the old policy end with it; batches that it queued stay, and are
    /// the new one's to revoke.
    fn policy_replaced(&mut self, now: Time) {
        self.routes.clear();
        for w in 0..self.workers.len() {
            self.empty_lanes(w);
        }
        self.completions.clear();
        self.restart_trigger(now);
    }

    fn restart_trigger(&mut self, now: Time) {
        let Self { trigger, guard, .. } = self;
        trigger.restart(now, guard.description());
    }

    fn handle_catalog_changed(&mut self, now: Time, catalog: Arc<Catalog>) {
        if catalog.validate().is_err() || catalog.workers.len() < self.workers.len() {
            return; // The driver validates before it tells; see `Catalog::validate`.
        }
        for spec in &catalog.workers[self.workers.len()..] {
            self.workers.push(Worker::new(spec));
        }
        self.routes = Routes::new(catalog.apps.len());
        self.load = LoadMonitor::new(catalog.apps.len());
        self.may_start.extend(0..self.workers.len());
        self.catalog = catalog;
        for faulted in self.guard.configure(&self.catalog) {
            self.out
                .push_back(Command::Notice(Notice::PolicyFaulted(faulted)));
        }
        self.policy_replaced(now);
    }

    /// What windows show: what the active policy wants, and whoever looks at decisions.
    pub fn shown(&self) -> Sights {
        let watched = self.watched.unwrap_or_default();
        self.guard.description().wants.or(watched)
    }

    /// The one place where a request leaves.
    fn end(
        &mut self,
        now: Time,
        id: RequestId,
        outcome: Outcome,
        by: Option<(Decided, Option<Ran>)>,
    ) {
        let Some(entry) = self.table.remove(id) else {
            return;
        };
        self.ledger.end(&outcome);
        if let Some(progress) = entry.progress {
            self.release(progress.worker, id, &outcome);
        }
        let latency = now.since(entry.request.arrival);
        if self.shown().completions {
            self.record_completion(id, &entry.request, &outcome, latency);
        }
        let (decided, ran) = match by {
            Some((decided, ran)) => (Some(decided), ran),
            None => (None, None),
        };
        self.out.push_back(Command::Reply(Reply {
            request: id,
            app: entry.request.app,
            outcome,
            latency,
            decided,
            ran,
            evidence: entry.evidence,
        }));
    }

    /// A request that was parked ends. Unless a batch consumed its activations, the
    /// executor must be told to forget them.
    fn release(&mut self, worker: WorkerId, request: RequestId, outcome: &Outcome) {
        if let Some(worker) = self.workers.get_mut(worker.index()) {
            worker.parked = worker.parked.saturating_sub(1);
        }
        if !matches!(outcome, Outcome::Answered { .. }) {
            self.out.push_back(Command::Release { worker, request });
        }
    }

    fn record_completion(
        &mut self,
        id: RequestId,
        request: &crate::request::Request,
        outcome: &Outcome,
        latency: Micros,
    ) {
        if self.completions.len() == COMPLETIONS_MAX {
            self.completions.pop_front();
        }
        let (variant, exit) = match *outcome {
            Outcome::Answered { variant, exit, .. } => (Some(variant), Some(exit)),
            _ => (None, None),
        };
        self.completions.push_back(Completion {
            id,
            app: request.app,
            end: End::from(outcome),
            variant,
            exit,
            latency,
        });
    }

    fn reject(&mut self, now: Time, id: RequestId, why: Rejection) {
        self.end(now, id, Outcome::Rejected(why), None);
    }

    fn next_batch(&mut self) -> BatchId {
        self.batches_made += 1;
        BatchId(self.batches_made)
    }

    fn decided_by_host(&self) -> Decided {
        Decided {
            window: 0,
            by: Arc::clone(&self.host),
        }
    }

    fn in_time(&self, now: Time, id: RequestId) -> bool {
        self.table
            .get(id)
            .is_some_and(|entry| now <= entry.request.deadline)
    }

    fn set_pending(&mut self, id: RequestId) {
        self.table.set_state(id, State::Pending);
        self.trigger.happened().arrival = true;
        self.rescue.happened().arrival = true;
    }
}

impl From<&Outcome> for End {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Answered { in_time: true, .. } | Outcome::ShortCircuited { in_time: true } => {
                Self::InTime
            }
            Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => Self::Late,
            Outcome::Rejected(_) => Self::Rejected,
            Outcome::Dropped(_) => Self::Dropped,
            Outcome::Failed(_) => Self::Failed,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}
