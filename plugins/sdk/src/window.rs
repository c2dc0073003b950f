//! Views over the columns of the window, without copies.
//!
//! - `placed`: requests that are parked, placed, or ended
//! - `index`, `kept`: positions found once per window, and workers kept between windows

mod index;
mod kept;
mod placed;

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::ids::{AppId, KindId, RequestId, VariantId, WorkerId};
use crate::sort::sort_distinct;

pub use index::Index;
pub(crate) use kept::KeptWorkers;
pub use placed::{Completion, Placed, PlacedState, Progress};
pub use raw::{Causes, Outcome};

/// [`raw::Workers::running_variant`] of an idle worker.
const IDLE: u32 = u32::MAX;

/// The columns of a window in which nothing is pending.
static NOTHING_PENDING: raw::Requests = raw::Requests {
    id: Vec::new(),
    app: Vec::new(),
    arrival: Vec::new(),
    deadline: Vec::new(),
    priority: Vec::new(),
    min_quality: Vec::new(),
};

/// One scheduling window.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    catalog: &'a Catalog,
    raw: &'a raw::Window,
    requests: &'a raw::Requests,
    index: &'a Index,
}

/// One pending request.
#[derive(Clone, Copy)]
pub struct RequestRef<'a> {
    window: Window<'a>,
    at: usize,
}

/// One worker and its state.
#[derive(Clone, Copy)]
pub struct WorkerRef<'a> {
    window: Window<'a>,
    at: usize,
}

// === impl Window ===

impl<'a> Window<'a> {
    /// Views over a window. `index` must have been [filled](Index::fill) from it.
    pub fn new(catalog: &'a Catalog, raw: &'a raw::Window, index: &'a Index) -> Self {
        Self {
            catalog,
            raw,
            requests: raw.requests.as_ref().unwrap_or(&NOTHING_PENDING),
            index,
        }
    }

    /// The catalog the policy was configured with.
    pub fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// The columns themselves. With `WindowFields::CHANGED_WORKERS` those of the workers are complete,
    /// their times may have passed, and `residents` has only those of workers that changed.
    pub fn raw(&self) -> &'a raw::Window {
        self.raw
    }

    /// When it was opened, on the host's clock.
    pub fn now_us(&self) -> u64 {
        self.raw.now
    }

    /// Why it was opened; several may hold.
    pub fn because(&self) -> Causes {
        self.raw.because
    }

    /// Number of pending requests.
    pub fn len(&self) -> usize {
        self.requests.id.len()
    }

    /// Nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.requests.id.is_empty()
    }

    /// Pending requests, oldest arrival first.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = RequestRef<'a>> + use<'a> {
        let window = *self;
        (0..self.len()).map(move |at| RequestRef { window, at })
    }

    /// The pending request at a position, as [`RequestRef::index`] gives it.
    ///
    /// # Panics
    /// The position is past the end.
    pub fn request(&self, index: usize) -> RequestRef<'a> {
        assert!(
            index < self.len(),
            "position {index} of {} pending",
            self.len()
        );
        RequestRef {
            window: *self,
            at: index,
        }
    }

    /// Pending requests of one app, oldest arrival first.
    pub fn requests_of(
        &self,
        app: AppId,
    ) -> impl ExactSizeIterator<Item = RequestRef<'a>> + use<'a> {
        let window = *self;
        let positions = self.index.of_app(app);
        positions.iter().map(move |&at| RequestRef {
            window,
            at: at as usize,
        })
    }

    /// As [`requests_of`](Self::requests_of) without the parked requests: these may run with any
    /// variant on any worker.
    pub fn fresh_of(&self, app: AppId) -> impl Iterator<Item = RequestRef<'a>> + use<'a> {
        self.requests_of(app)
            .filter(|request| request.progress().is_none())
    }

    /// Whether any pending request has run some stages.
    pub fn any_parked(&self) -> bool {
        self.raw.progress.is_some()
    }

    /// Parked requests of a worker, sorted by progress, then by arrival: requests of equal progress
    /// can share a batch.
    pub fn parked_on(&self, worker: WorkerId) -> Vec<(Progress, RequestRef<'a>)> {
        let parked = self.raw.progress.iter().flatten();
        let mut parked: Vec<_> = parked
            .filter(|p| p.worker == worker.0 && (p.index as usize) < self.len())
            .map(|p| (Progress::from_raw(p), self.request(p.index as usize)))
            .collect();
        sort_distinct(&mut parked, |a, b| (a.0, a.1.at) < (b.0, b.1.at));
        parked
    }

    /// Workers, in the catalog's order.
    pub fn workers(&self) -> impl ExactSizeIterator<Item = WorkerRef<'a>> + use<'a> {
        let window = *self;
        (0..self.catalog.workers().len()).map(move |at| WorkerRef { window, at })
    }

    /// The workers that changed since the policy's last window, for figures that the policy keeps by
    /// worker. None: any may have changed. Needs `WindowFields::CHANGED_WORKERS`. A worker whose
    /// `busy_until_us` or `free_at_us` only keeps up with the time has not changed.
    pub fn changed_workers(
        &self,
    ) -> Option<impl ExactSizeIterator<Item = WorkerRef<'a>> + use<'a>> {
        let window = *self;
        let changed = self.index.changed_workers()?;
        Some(changed.iter().map(move |&at| WorkerRef {
            window,
            at: at as usize,
        }))
    }

    /// One worker.
    ///
    /// # Panics
    /// The id is not of this window's catalog.
    pub fn worker(&self, id: WorkerId) -> WorkerRef<'a> {
        assert!(
            id.index() < self.catalog.workers().len(),
            "no worker {}",
            id.0
        );
        WorkerRef {
            window: *self,
            at: id.index(),
        }
    }

    /// Workers that are up with nothing running and nothing queued, those whose batches end first first;
    /// in the catalog's order if they have none.
    pub fn idle_workers(&self) -> Vec<WorkerRef<'a>> {
        let idle = || self.workers().filter(WorkerRef::is_idle);
        // Counted first: growing a list costs more than reading three columns twice.
        let mut sorted = Vec::with_capacity(idle().count());
        sorted.extend(idle());
        let key = |worker: &WorkerRef<'_>| (worker.busy_until_us(), worker.at);
        sort_distinct(&mut sorted, |a, b| key(a) < key(b));
        sorted
    }

    /// Requests of an app per second over the last 500 ms.
    pub fn arrival_rate(&self, app: AppId) -> f64 {
        self.raw
            .arrival_rate
            .get(app.index())
            .copied()
            .unwrap_or(0.0)
    }

    /// Observed over profiled latency of a kind of workers: 1 as fast as profiled, and while the
    /// host's predictions keep to the profile.
    pub fn slowdown(&self, kind: KindId) -> f64 {
        let slowdown = self.raw.slowdown.as_ref();
        slowdown
            .and_then(|by_kind| by_kind.get(kind.index()).copied())
            .unwrap_or(1.0)
    }

    /// Requests that are not pending, worker by worker in running order. Empty unless
    /// `WindowFields::PLACED` was asked for.
    pub fn placed(&self) -> impl ExactSizeIterator<Item = Placed> + use<'a> {
        let placed = self.raw.placed.as_ref();
        let rows = placed.map_or(0, |placed| placed.id.len());
        // There is a row for each position only if there are columns.
        (0..rows).map(move |i| Placed::from_raw(placed.expect("columns with rows"), i))
    }

    /// Requests that ended since the last window. Empty unless `WindowFields::COMPLETIONS` was asked
    /// for.
    pub fn completions(&self) -> impl ExactSizeIterator<Item = Completion> + use<'a> {
        let ended = self.raw.completions.as_ref();
        let rows = ended.map_or(0, |ended| ended.id.len());
        // There is a row for each position only if there are columns.
        (0..rows).map(move |i| Completion::from_raw(ended.expect("columns with rows"), i))
    }
}

// === impl RequestRef ===

impl<'a> RequestRef<'a> {
    /// Its position in the window, oldest arrival first.
    pub fn index(self) -> usize {
        self.at
    }

    /// Its id.
    pub fn id(self) -> RequestId {
        RequestId(self.columns().id[self.at])
    }

    /// The app it asks for.
    pub fn app(self) -> AppId {
        AppId(self.columns().app[self.at])
    }

    /// When it arrived, on the host's clock.
    pub fn arrival_us(self) -> u64 {
        self.columns().arrival[self.at]
    }

    /// When its answer loses worth, on the host's clock.
    pub fn deadline_us(self) -> u64 {
        self.columns().deadline[self.at]
    }

    /// Time left to the deadline, negative once it has passed.
    pub fn slack_us(self) -> i64 {
        self.deadline_us()
            .wrapping_sub(self.window.raw.now)
            .cast_signed()
    }

    /// Time since it arrived.
    pub fn age_us(self) -> u64 {
        self.window.raw.now.saturating_sub(self.arrival_us())
    }

    /// 0 = unspecified, 1 = highest, larger = lower.
    pub fn priority(self) -> u32 {
        self.columns().priority[self.at]
    }

    /// Least quality that the client asks for; 0 asks for none.
    pub fn min_quality(self) -> f64 {
        f64::from(self.columns().min_quality[self.at])
    }

    /// Its cost in rows of the profile: a batch takes as long as a profiled one of as many requests
    /// as the costs of its requests add up to. 1 for a request as long as those of the profile.
    pub fn cost(self) -> f64 {
        let costs = self.window.raw.cost.as_ref();
        let cost = costs.and_then(|costs| costs.get(self.at).copied());
        cost.map_or(1.0, f64::from)
    }

    /// The stages it has run; none if it has run no stage.
    pub fn progress(self) -> Option<Progress> {
        let at = self.window.index.progress_of(self.at)?;
        let progress = self.window.raw.progress.as_deref()?;
        progress.get(at).map(Progress::from_raw)
    }

    /// Labels of its nearest neighbours, one count per class of its app; none until they are ready.
    /// Needs `WindowFields::EVIDENCE`.
    pub fn evidence(self) -> Option<&'a [u32]> {
        let start = self.window.index.evidence_of(self.at)?;
        let classes = self.window.catalog.app(self.app()).classes.len();
        let evidence = self.window.raw.evidence.as_ref()?;
        evidence.counts.get(start..start + classes)
    }

    fn columns(self) -> &'a raw::Requests {
        self.window.requests
    }
}

impl From<RequestRef<'_>> for RequestId {
    fn from(request: RequestRef<'_>) -> Self {
        request.id()
    }
}

// === impl WorkerRef ===

impl WorkerRef<'_> {
    /// Its id.
    pub fn id(&self) -> WorkerId {
        WorkerId(self.at as u32)
    }

    /// It takes dispatches.
    pub fn is_up(&self) -> bool {
        self.columns().up[self.at] != 0
    }

    /// It is up with nothing running and nothing queued.
    pub fn is_idle(&self) -> bool {
        self.is_up() && self.running_variant().is_none() && self.queued() == 0
    }

    /// When the running batch is expected to end, on the host's clock; now if none runs.
    pub fn busy_until_us(&self) -> u64 {
        self.columns().busy_until[self.at].max(self.window.raw.now)
    }

    /// When it could start a new batch, on the host's clock: after its running and queued ones, and
    /// never in the past.
    pub fn free_at_us(&self) -> u64 {
        self.columns().free_at[self.at].max(self.window.raw.now)
    }

    /// When the running batch began, on the host's clock.
    pub fn running_since_us(&self) -> Option<u64> {
        self.running_variant()
            .map(|_| self.columns().running_since[self.at])
    }

    /// Variant of the running batch.
    pub fn running_variant(&self) -> Option<VariantId> {
        Some(VariantId(self.columns().running_variant[self.at])).filter(|v| v.0 != IDLE)
    }

    /// Batches that wait in its queue.
    pub fn queued(&self) -> u32 {
        self.columns().queued[self.at]
    }

    /// Requests parked here.
    pub fn parked(&self) -> u32 {
        self.columns().parked[self.at]
    }

    /// Bytes not taken by resident variants.
    pub fn free_memory_bytes(&self) -> u64 {
        self.columns().free_memory[self.at]
    }

    /// Its incarnation, from 1 on: one more each time that it came back without its resident variants
    /// and parked requests. 0 while it is away.
    pub fn incarnation(&self) -> u32 {
        self.columns().up[self.at]
    }

    /// Observed over profiled latency of its kind of workers.
    pub fn slowdown(&self) -> f64 {
        self.window
            .slowdown(self.window.catalog.worker(self.id()).kind())
    }

    /// Whether a variant is in its memory. Needs `WindowFields::RESIDENTS`.
    pub fn holds(&self, variant: VariantId) -> bool {
        self.window.index.holds(self.id(), variant)
    }

    fn columns(&self) -> &raw::Workers {
        &self.window.raw.workers
    }
}
