//! The place of a pool's shadow: the configuration fills it at the start, operators while the pool serves.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchyard_policy::loader::Loader;

use super::{Shadow, ShadowError, ShadowParts, ShadowStatus};
use crate::driver::PoolHandle;
use crate::telemetry::Registry;

/// Makes a loader under the pool's limits.
pub type MakeLoader = Box<dyn Fn() -> Loader + Send + Sync>;

/// The place; clones are the same one.
#[derive(Clone)]
pub struct ShadowSlot(Arc<Place>);

/// Ends the shadow in a place when dropped.
pub struct ShadowOwner(ShadowSlot);

struct Place {
    pool: Arc<PoolHandle>,
    loader: MakeLoader,
    /// The settings of the pool.
    settings: toml::Table,
    registry: Registry,
    shadow: Mutex<Option<Shadow>>,
}

// === impl ShadowSlot ===

impl ShadowSlot {
    /// Starts a shadow, and ends the one before.
    ///
    /// # Errors
    /// The folder of its component cannot be watched, or the system refuses a thread. There is no shadow
    /// then.
    pub fn start(&self, file: PathBuf, settings: toml::Table) -> Result<(), ShadowError> {
        let mut shadow = self.lock();
        // Its watch of the pool ends before the next one begins.
        drop(shadow.take());
        let parts = ShadowParts {
            pool: Arc::clone(&self.0.pool),
            file,
            settings,
            loader: (self.0.loader)(),
            registry: self.0.registry.clone(),
        };
        *shadow = Some(Shadow::start(parts)?);
        Ok(())
    }

    /// The same with the settings of the pool, which a promotion would use.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_candidate(&self, file: PathBuf) -> Result<(), ShadowError> {
        self.start(file, self.0.settings.clone())
    }

    /// Ends the shadow. False: there was none.
    pub fn end(&self) -> bool {
        self.lock().take().is_some()
    }

    /// The findings so far; none without a shadow.
    pub fn status(&self) -> Option<ShadowStatus> {
        self.lock().as_ref().map(|shadow| shadow.log().status())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shadow>> {
        // A shadow is taken out or put in whole.
        self.0.shadow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ShadowOwner ===

impl ShadowOwner {
    /// An empty place of a pool with these settings.
    pub fn new(
        pool: Arc<PoolHandle>,
        loader: MakeLoader,
        settings: toml::Table,
        registry: Registry,
    ) -> Self {
        Self(ShadowSlot(Arc::new(Place {
            pool,
            loader,
            settings,
            registry,
            shadow: Mutex::default(),
        })))
    }

    /// The place.
    pub fn slot(&self) -> &ShadowSlot {
        &self.0
    }
}

impl Drop for ShadowOwner {
    fn drop(&mut self) {
        self.0.end();
    }
}
