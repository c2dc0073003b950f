//! The backend that serves now. Another one may take its place between two requests.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::backend::Backend;
use super::infer::AppBodies;
use super::limits::Limits;

/// The backend that new requests get. A request keeps the backend that it began with.
pub struct Backends<B> {
    current: ArcSwap<Exposed<B>>,
    limits: ArcSwap<Limits>,
}

/// A backend, and the facts that follow from its apps.
pub(super) struct Exposed<B> {
    pub(super) backend: Arc<B>,
    /// By [`AppIndex`](super::AppIndex).
    pub(super) bodies: Vec<AppBodies>,
}

/// A backend that gets no new requests.
pub struct Replaced<B>(Arc<Exposed<B>>);

// === impl Backends ===

impl<B: Backend> Backends<B> {
    /// Begins with this backend.
    pub fn new(backend: Arc<B>, limits: Limits) -> Self {
        Self {
            current: ArcSwap::from_pointee(Exposed::new(backend, &limits)),
            limits: ArcSwap::from_pointee(limits),
        }
    }

    /// Requests that come from now on get this backend, and these limits where they are of a request.
    pub fn replace(&self, backend: Arc<B>, limits: Limits) -> Replaced<B> {
        let exposed = Arc::new(Exposed::new(backend, &limits));
        self.limits.store(Arc::new(limits));
        Replaced(self.current.swap(exposed))
    }

    pub(super) fn current(&self) -> Arc<Exposed<B>> {
        self.current.load_full()
    }

    pub(super) fn limits(&self) -> Arc<Limits> {
        self.limits.load_full()
    }
}

// === impl Exposed ===

impl<B: Backend> Exposed<B> {
    fn new(backend: Arc<B>, limits: &Limits) -> Self {
        let apps = backend.apps().iter();
        Self {
            bodies: apps.map(|app| AppBodies::new(app, limits)).collect(),
            backend,
        }
    }
}

// === impl Replaced ===

impl<B> Replaced<B> {
    /// Whether a request that began with it has not ended.
    pub fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
