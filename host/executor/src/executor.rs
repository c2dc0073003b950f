//! The seam between a worker thread and the framework that computes.

use std::sync::Arc;

use switchyard_core::ids::{RequestId, VariantId};
use switchyard_core::time::Micros;

use crate::cache::ModelCache;
use crate::error::{CacheError, ExecuteError};
use crate::job::{BatchOutput, Job, Residency};
use crate::source::LoadedModel;

/// Runs one batch at a time.
///
/// A panic leaves an executor usable: [`Worker`](crate::worker::Worker) catches it, fails the
/// batch and continues with the same executor.
pub trait Executor: Send {
    /// Runs a batch to its end and takes the inputs out of it. Afterwards its requests are parked
    /// if, and only if, the result is [`BatchOutput::Parked`].
    fn run(&mut self, job: &mut Job) -> JobOutcome;

    /// Drops the parked activations of a request that will not continue, if it has any.
    fn release(&mut self, request: RequestId);

    /// Drops parked activations from any thread, without waiting for a batch that runs. `None`:
    /// [`release`](Self::release) does it, after the batches sent before.
    fn release_at_once(&self) -> Option<ReleaseAtOnce> {
        None
    }

    /// Whether it runs batches of some stages, and parks activations.
    fn runs_stages(&self) -> bool {
        true
    }

    /// Makes a variant resident ahead of its first batch and returns the time that took; zero if it
    /// was already.
    ///
    /// # Errors
    /// As for the load of a batch.
    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError>;

    /// The content of the memory.
    fn residency(&self) -> Residency;

    /// Unloads a variant, pinned or not. Executors without models do nothing.
    fn unload(&mut self, variant: VariantId) {
        let _ = variant;
    }

    /// Runs later batches of a resident variant on other weights. Parked requests continue with the
    /// weights they began with. Executors without models do nothing.
    fn replace(&mut self, variant: VariantId, model: &Arc<LoadedModel>) {
        let _ = (variant, model);
    }

    /// Another executor of the same device, for a second batch at a time; `None` if it runs one at a time.
    fn another(&self) -> Option<Box<dyn Executor>> {
        None
    }

    /// Watches over a device that may go away between two batches. `report` is called at most once, from
    /// another thread. The closure that comes back gives up the batch that runs, and later ones.
    /// Executors that only fail while they run do nothing.
    fn watch(&mut self, report: ReportAbsence) -> Option<GiveUp> {
        drop(report);
        None
    }

    /// The models, for the thread that loads while batches run; `None` if there is nothing to load.
    fn models(&self) -> Option<Arc<ModelCache>> {
        None
    }
}

/// Why a worker takes no more batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Its device ends in order: the batch that runs may end.
    Leaving(String),
    /// Its device does not answer any more.
    Lost(String),
}

/// Takes the absence of a device.
pub type ReportAbsence = Box<dyn FnOnce(Absence) + Send>;

/// Drops the parked activations of a request.
pub type ReleaseAtOnce = Box<dyn Fn(RequestId) + Send + Sync>;

/// Gives up the batches of an executor.
pub type GiveUp = Box<dyn Fn() + Send + Sync>;

/// The outcome of a [`Job`].
#[derive(Debug)]
pub struct JobOutcome {
    /// Its answers, or why there are none.
    pub result: Result<BatchOutput, ExecuteError>,
    /// Time spent on assembly, stages, head and output.
    pub compute: Micros,
    /// Time spent making the variant resident; zero if it was already.
    pub load: Micros,
}

// === impl JobOutcome ===

impl JobOutcome {
    /// The outcome of a batch that did not begin.
    pub(crate) fn not_begun(error: ExecuteError) -> Self {
        Self {
            result: Err(error),
            compute: Micros::ZERO,
            load: Micros::ZERO,
        }
    }
}
