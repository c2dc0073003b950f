//! The states of apps and their models.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use switchyard_core::ids::{AppId, VariantId};
use switchyard_executor::{CacheCounts, Residency};
use tokio::sync::oneshot;

/// Takes the end of a load.
pub type LoadEnd = oneshot::Sender<Result<(), String>>;

/// The state of an app's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppState {
    /// Its requests are served.
    Ready,
    /// It was unloaded and is being loaded again.
    Loading,
    /// No request is taken any more; the accepted ones are being served.
    Unloading,
    /// Unloaded: no request is taken.
    Unloaded,
}

/// The states of apps and variants that clients see. Written by the driver and by the start of an
/// unload, read by every request.
#[derive(Debug)]
pub struct ModelStates {
    /// By app: requests are taken. Outside of the lock, because every request reads it.
    serving: Vec<AtomicBool>,
    shown: Mutex<ShownStates>,
}

#[derive(Debug)]
pub(super) struct ShownStates {
    apps: Vec<AppState>,
    /// Variants whose last load failed, and why.
    pub(super) failed: BTreeMap<VariantId, String>,
}

/// One app, as the driver keeps it.
#[derive(Debug, Default)]
pub(super) struct AppModels {
    /// Requests that have not ended.
    pub(super) live: usize,
    /// Loads that the driver asked for and that have not ended.
    pub(super) loading: usize,
    /// The first of them that failed.
    pub(super) error: Option<String>,
    pub(super) waiting: Vec<LoadEnd>,
    pub(super) unloaded: bool,
    /// Workers' answers to an unload that have not come.
    pub(super) unloading: usize,
}

/// One worker, as the driver knows it.
#[derive(Debug, Default)]
pub(super) struct WorkerModels {
    /// Never evicted.
    pub(super) pinned: Vec<VariantId>,
    /// Its last report.
    pub(super) holds: Residency,
    /// Counts of its earlier starts.
    pub(super) earlier: CacheCounts,
    /// Variants that it was asked to load, and that have not ended: one command each, so that
    /// repeated commands do not fill its queue.
    pub(super) asked: BTreeSet<VariantId>,
    /// Variants that it was asked to let go, likewise.
    pub(super) letting_go: BTreeSet<VariantId>,
}

// === impl AppState ===

impl AppState {
    /// In the words of the repository index.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::Loading => "LOADING",
            Self::Unloading => "UNLOADING",
            Self::Unloaded => "UNAVAILABLE",
        }
    }
}

// === impl ModelStates ===

impl ModelStates {
    pub(super) fn new(apps: usize) -> Self {
        Self {
            serving: (0..apps).map(|_| AtomicBool::new(true)).collect(),
            shown: Mutex::new(ShownStates {
                apps: vec![AppState::Ready; apps],
                failed: BTreeMap::new(),
            }),
        }
    }

    /// Whether requests of this app are taken.
    pub fn serves(&self, app: AppId) -> bool {
        let serving = self.serving.get(app.index());
        serving.is_some_and(|serving| serving.load(Ordering::Acquire))
    }

    /// The state of an app's models.
    pub fn app(&self, app: AppId) -> AppState {
        let shown = self.shown();
        shown
            .apps
            .get(app.index())
            .copied()
            .unwrap_or(AppState::Unloaded)
    }

    /// Why the last load of a variant failed, if it did.
    pub fn failure(&self, variant: VariantId) -> Option<String> {
        self.shown().failed.get(&variant).cloned()
    }

    /// No request of this app is taken from now on.
    pub fn begin_unload(&self, app: AppId) {
        self.set(app, AppState::Unloading);
    }

    pub(super) fn set(&self, app: AppId, state: AppState) {
        if let Some(serving) = self.serving.get(app.index()) {
            serving.store(state == AppState::Ready, Ordering::Release);
        }
        if let Some(shown) = self.shown().apps.get_mut(app.index()) {
            *shown = state;
        }
    }

    pub(super) fn shown(&self) -> MutexGuard<'_, ShownStates> {
        // Whole at every point where a panic could strike.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
