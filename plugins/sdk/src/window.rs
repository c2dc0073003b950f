//! Views over the columns of the window, without copies.
//!
//! - `request`, `worker`: one row each; `placed`: requests that are placed, and those that ended
//! - `index`, `kept`: positions found once per window, and workers kept between windows

mod index;
mod kept;
mod placed;
mod request;
mod worker;

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::ids::{AppId, KindId, WorkerId};
use crate::sort::sort_distinct;

pub use index::Index;
pub(crate) use kept::KeptWorkers;
pub use placed::{Completion, Placed, PlacedState};
pub use raw::{Causes, Outcome};
pub use request::{Progress, RequestRef};
pub use worker::WorkerRef;

/// [`raw::Workers::running_variant`] of an idle worker, and the variant and exit of a request that was
/// answered by none.
const NONE: u32 = u32::MAX;

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
