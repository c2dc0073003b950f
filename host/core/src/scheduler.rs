//! The scheduling state machine: events and the time in, commands out.
//!
//! The driver's loop:
//! ```text
//! for event in what_happened { scheduler.handle(now, event) }
//! while let Some(command) = scheduler.poll(now) { carry_out(command) }
//! wait_until(next_event or scheduler.next_wakeup())
//! ```
//! Events of one moment are handled before the first poll, so that they share a window.

mod admission;
mod arrivals;
mod batches;
mod decisions;
mod ends;
mod goodput;
mod held;
mod lanes;
mod late;
mod neglect;
mod outages;
mod repeats;
mod windows;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::arrived::ArrivedCosts;
use crate::capacity::Capacity;
use crate::catalog::{Catalog, CatalogError};
use crate::decision::History;
use crate::estimate::Estimates;
use crate::event::{Command, Event, Notice};
use crate::flood::Flood;
use crate::guard::{FaultLimit, Faulted, Guard, HOST_LABEL};
use crate::habit::Habit;
use crate::held::HeldRequests;
use crate::ids::{BatchId, RequestId, WorkerId};
use crate::ledger::Ledger;
use crate::load::LoadMonitor;
use crate::plan::CheckBuffers;
use crate::planted::{Planted, PlantedDefect};
use crate::policy::{Policy, WindowFields};

use crate::route::Routes;
use crate::table::{RequestState, RequestTable};
use crate::time::{Micros, Time};
use crate::trigger::Trigger;
use crate::window::{Completion, Window};
use crate::worker::{Decided, WorkerSet};

pub use neglect::{OVERTAKEN_MAX, REJECTS_LOOKED_AT};

/// Completions kept between two windows of a policy; the oldest are dropped beyond it.
pub const COMPLETIONS_MAX: usize = 65_536;

/// Bounds and seed of a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    /// Seed of the draws over routes.
    pub seed: u64,
    /// Requests that may be pending, those with a pinned variant included; one more is rejected.
    pub pending_max: usize,
    /// When a policy that faults is taken off.
    pub fault_limit: FaultLimit,
    /// How long past its deadline a request may stay pending while a worker is idle. Then the
    /// fallback serves it and the policy is charged with a fault. While all workers are busy the
    /// host serves it once [`OVERTAKEN_MAX`] batches of later requests have started since, without
    /// a fault.
    pub patience: Micros,
    /// Decisions kept, for explanations and for trials of new policies.
    pub history: usize,
    /// Every decision comes as a [`Command::Decided`], for a recorder.
    pub tells_decisions: bool,
    /// Predictions follow the observed latencies. Otherwise they are the profile's.
    pub follows_latencies: bool,
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
            follows_latencies: false,
        }
    }
}

/// The scheduling state machine of one pool.
pub struct Scheduler {
    config: SchedulerConfig,
    catalog: Arc<Catalog>,
    table: RequestTable,
    workers: WorkerSet,
    routes: Routes,
    held: HeldRequests,
    load: LoadMonitor,
    costs: ArrivedCosts,
    ledger: Ledger,
    capacity: Capacity,
    estimates: Estimates,
    /// By app.
    habits: Vec<Habit>,
    /// Requests in [`RequestState::Late`], by deadline.
    late: BTreeSet<(Time, RequestId)>,
    /// The client of one of them may have pinned its variant.
    late_pins: bool,
    /// When a request that looks hopeless was last let in.
    last_probe: Option<Time>,
    flood: Option<Flood>,
    /// When the fallback last served requests that would have been lost.
    saved: Time,
    /// The time of the newest event or poll.
    now: Time,
    guard: Guard,
    trigger: Trigger,
    /// Opens windows for the fallback while the active policy fails.
    rescue: Trigger,
    history: History,
    /// Fields that windows show in addition to the policy's, while decisions are watched.
    watched: Option<WindowFields>,
    random: Pcg64,
    windows_opened: u64,
    /// When the fallback last served a starving request.
    relieved: Time,
    /// When the policy was last charged with one.
    charged: Time,
    /// The pending request with the earliest deadline, and the batches that overtook it.
    overtaken: (RequestId, u32),
    /// Not later than the time at which a lane must start a batch below its `min_batch`.
    lanes_due: Time,
    batches_made: u64,
    batches_running: usize,
    /// No running batch is overdue before this. None while none runs.
    overdue_from: Option<Time>,
    /// By app: no worker is up that can hold any of its variants.
    unserved: Vec<bool>,
    draining: bool,
    completions: VecDeque<Completion>,
    out: VecDeque<Command>,
    /// Workers that may be able to start a batch since something happened to them, so that
    /// [`poll`](Self::poll) need not look at every worker.
    may_start: Vec<WorkerId>,
    /// Workers that leave the turn to the policy although the host holds requests for them.
    yielding: Vec<WorkerId>,
    check: CheckBuffers,
    faulted: Vec<Faulted>,
    /// The label of decisions about pinned and routed requests.
    host: Arc<str>,
    planted: PlantedDefect,
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
        // Configures the native fallback, which takes any valid catalog.
        guard.configure(&catalog);
        Ok(Self {
            table: RequestTable::default(),
            workers: WorkerSet::new(&catalog.workers),
            routes: Routes::new(catalog.apps.len()),
            held: HeldRequests::default(),
            load: LoadMonitor::new(catalog.apps.len()),
            costs: ArrivedCosts::new(catalog.apps.len()),
            ledger: Ledger::default(),
            capacity: Capacity::of(&catalog),
            estimates: estimates(&catalog, &config),
            habits: vec![Habit::default(); catalog.apps.len()],
            late: BTreeSet::new(),
            late_pins: false,
            last_probe: None,
            flood: None,
            saved: Time::ZERO,
            now: Time::ZERO,
            guard,
            trigger: Trigger::default(),
            rescue: Trigger::default(),
            history: History::new(config.history),
            watched: None,
            random: Pcg64::seed_from_u64(config.seed),
            windows_opened: 0,
            relieved: Time::ZERO,
            charged: Time::ZERO,
            overtaken: (RequestId(0), 0),
            lanes_due: Time::NEVER,
            batches_made: 0,
            batches_running: 0,
            overdue_from: None,
            unserved: vec![false; catalog.apps.len()],
            draining: false,
            completions: VecDeque::new(),
            out: VecDeque::new(),
            may_start: Vec::new(),
            yielding: Vec::new(),
            check: CheckBuffers::default(),
            faulted: Vec::new(),
            host: Arc::from(HOST_LABEL),
            planted: PlantedDefect::default(),
            catalog,
            config,
        })
    }

    /// Takes an event in. Call [`poll`](Self::poll) afterwards until it returns none.
    pub fn handle(&mut self, now: Time, event: Event) {
        self.advance(now);
        match event {
            Event::Arrived(request) => self.handle_arrival(now, request),
            Event::Evidence { request, counts } => self.handle_evidence(request, counts),
            Event::Cancelled(request) => self.handle_cancelled(now, request),
            Event::Finished { worker, batch, end } => self.handle_finished(now, worker, batch, end),
            Event::Residency {
                worker,
                resident,
                free_bytes,
            } => {
                if let Some(worker) = self.workers.get_mut(worker) {
                    worker.resident = resident;
                    worker.free_bytes = free_bytes;
                }
            }
            Event::WorkerDown { worker, reason } => self.handle_worker_down(now, worker, &reason),
            Event::WorkerLeaving(worker) => self.handle_worker_leaving(now, worker),
            Event::WorkerUp(worker) => self.handle_worker_up(now, worker),
            Event::PolicyChanged(policy) => self.handle_policy_changed(now, policy),
            Event::PolicyRecompiled(policy) => self.handle_policy_recompiled(policy),
            Event::PolicyRemoved => self.handle_policy_removed(now),
            Event::CatalogChanged(catalog) => self.handle_catalog_changed(now, catalog),
            Event::Watched(fields) => self.watched = fields,
            Event::Drain => self.drain(),
        }
    }

    /// The next command; opens a window when one is due. None: nothing to do until the next
    /// event or [`next_wakeup`](Self::next_wakeup).
    pub fn poll(&mut self, now: Time) -> Option<Command> {
        loop {
            if let Some(command) = self.out.pop_front() {
                return Some(command);
            }
            self.advance(now);
            self.drop_expired(now);
            self.drop_overdue(now);
            self.reject_unserved(now);
            self.shed(now);
            self.start_due_lanes(now);
            self.start_workers(now);
            let found = self.open_window(now) || self.start_held(now) || self.serve_late(now);
            if !found && self.out.is_empty() {
                return None;
            }
        }
    }

    /// As [`poll`](Self::poll) without opening a window: [`look`](Self::look) then shows the state
    /// that a policy would see if it were asked now. For drivers that take decisions from outside,
    /// such as a trainer. None: no command is left.
    pub fn poll_between_windows(&mut self, now: Time) -> Option<Command> {
        self.advance(now);
        self.drop_expired(now);
        self.drop_overdue(now);
        self.reject_unserved(now);
        self.shed(now);
        self.start_due_lanes(now);
        self.start_workers(now);
        if self.out.is_empty() {
            self.start_held(now);
        }
        self.out.pop_front()
    }

    /// Writes the state as the next window would show it into `window`, without a number, causes
    /// or completions. Neither asks a policy nor changes the state.
    pub fn look(&mut self, now: Time, wants: WindowFields, window: &mut Window) {
        window.clear();
        self.show_state(now, wants, window);
        self.workers.show(now, true, wants.residents);
        window.workers.clone_from(self.workers.columns());
        if wants.residents {
            window.residents.extend_from_slice(self.workers.residents());
        }
    }

    /// When to poll again even if nothing happens.
    pub fn next_wakeup(&self) -> Option<Time> {
        let expiry = self.table.next_expiry().map(|at| at + Micros(1));
        let starving = self.starving_at();
        let starving = starving.filter(|_| !self.planted.is(Planted::ForgottenWakeup));
        let lane = Some(self.lanes_due).filter(|&at| at < Time::NEVER);
        let hopeless = self.next_hopeless(self.now);
        let lost = self.next_almost_lost();
        let late = self.late_due().filter(|&at| at > self.now);
        let unserved = self.unserved_until();
        [
            self.trigger.next_time(),
            expiry,
            starving,
            lane,
            hopeless,
            lost,
            late,
            self.overdue_from,
            unserved,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Plants a defect, for tests of a soak run.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn plant(&mut self, defect: Planted) {
        self.planted.plant(defect);
    }

    /// The catalog in force.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Counts of accepted and ended requests.
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

    /// Pending requests, and those that wait for the host because their client pinned the
    /// variant: together they are at most `pending_max`.
    pub fn pending(&self) -> usize {
        self.waiting()
    }

    /// Windows opened so far.
    pub fn windows_opened(&self) -> u64 {
        self.windows_opened
    }

    /// Label of the policy that is asked first.
    pub fn policy_label(&self) -> Arc<str> {
        self.guard.label()
    }

    /// Labels of the policies that may serve again: the active one and its last good version.
    pub fn policy_labels(&self) -> impl Iterator<Item = &Arc<str>> {
        self.guard.labels()
    }

    /// Whether a worker is up: it was not lost, or it is back.
    pub fn is_up(&self, worker: WorkerId) -> bool {
        let held = self.workers.get(worker.index());
        held.is_some_and(|held| held.up)
    }

    /// Whether a worker has a batch that may still end, also one that is not up any more.
    pub fn is_running(&self, worker: WorkerId) -> bool {
        let held = self.workers.get(worker.index());
        held.is_some_and(|held| held.running.is_some())
    }

    /// Whether the native fallback serves: there is no policy, or the active one fails.
    pub fn fallback_serves(&self) -> bool {
        !self.guard.has_policy() || self.guard.rescue().is_some()
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

    fn handle_policy_recompiled(&mut self, policy: Box<dyn Policy>) {
        let Some(handed_over) = self.guard.recompiled(policy) else {
            return;
        };
        let label = self.guard.label();
        self.out.push_back(Command::Notice(Notice::PolicySwitched {
            from: Arc::clone(&label),
            to: label,
            state_lost: handed_over.err(),
        }));
    }

    fn handle_policy_removed(&mut self, now: Time) {
        let from = self.guard.label();
        self.guard.remove();
        self.policy_replaced(now);
        self.out
            .push_back(Command::Notice(Notice::PolicyRemoved { from }));
    }

    /// Ends the routes of the old policy. Batches that it queued stay; the new policy may revoke
    /// them.
    fn policy_replaced(&mut self, now: Time) {
        self.routes.clear();
        for worker in self.workers.ids() {
            self.empty_lanes(worker);
        }
        self.completions.clear();
        self.habits.iter_mut().for_each(Habit::forget_policy);
        self.restart_trigger(now);
    }

    fn restart_trigger(&mut self, now: Time) {
        let Self { trigger, guard, .. } = self;
        trigger.restart(now, guard.description());
    }

    fn handle_catalog_changed(&mut self, now: Time, catalog: Arc<Catalog>) {
        if catalog.validate().is_err() || catalog.workers.len() < self.workers.len() {
            return; // The driver validates first, see `Catalog::validate`.
        }
        self.workers.fit(&catalog.workers);
        self.routes = Routes::new(catalog.apps.len());
        self.load = LoadMonitor::new(catalog.apps.len());
        self.costs.resize(catalog.apps.len());
        self.capacity = Capacity::of(&catalog);
        self.estimates = estimates(&catalog, &self.config);
        self.habits = vec![Habit::default(); catalog.apps.len()];
        self.may_start.extend(self.workers.ids());
        self.catalog = catalog;
        self.note_served();
        for faulted in self.guard.configure(&self.catalog) {
            self.out
                .push_back(Command::Notice(Notice::PolicyFaulted(faulted)));
        }
        self.policy_replaced(now);
    }

    /// The fields of the next window: those of the active policy and those watched.
    pub fn shown(&self) -> WindowFields {
        let watched = self.watched.unwrap_or_default();
        self.guard.description().wants.or(watched)
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
        self.table.set_state(id, RequestState::Pending);
        self.trigger.happened().arrival = true;
        self.rescue.happened().arrival = true;
    }
}

fn estimates(catalog: &Catalog, config: &SchedulerConfig) -> Estimates {
    let percentile = catalog.profile.percentile();
    Estimates::new(config.follows_latencies, percentile, catalog.kinds.len())
}
