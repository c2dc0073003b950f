//! The commands of a worker thread.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchyard_core::ids::{RequestId, VariantId};

use crate::claim::WaitingInputs;
use crate::job::Job;
use crate::source::LoadedModel;

/// A message to a worker thread.
#[derive(Debug)]
pub(crate) enum WorkerCommand {
    /// With its inputs apart, if it can be cancelled.
    Run(Job, Option<WaitingInputs>),
    Release(RequestId),
    Preload(VariantId),
    Unload(VariantId),
    /// Takes the weights from the [`Replacements`].
    Replace(VariantId),
}

/// The weights to run later batches on: the newest ones per variant, so that replacements of a busy
/// worker fill neither its queue nor the memory.
#[derive(Clone, Default)]
pub(crate) struct Replacements(Arc<Mutex<HashMap<VariantId, Arc<LoadedModel>>>>);

// === impl Replacements ===

impl Replacements {
    /// True if no replacement of the variant waits: the worker needs a command.
    pub(crate) fn put(&self, variant: VariantId, model: Arc<LoadedModel>) -> bool {
        self.lock().insert(variant, model).is_none()
    }

    pub(crate) fn take(&self, variant: VariantId) -> Option<Arc<LoadedModel>> {
        self.lock().remove(&variant)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<VariantId, Arc<LoadedModel>>> {
        // Whole at every point where a panic could strike.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Replacements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = self.lock();
        let names = lock.values().map(|model| model.name.as_str());
        f.debug_list().entries(names).finish()
    }
}
