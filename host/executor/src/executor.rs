//! The one thing a worker thread knows about what it runs.

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
/// batch and goes on with the same executor.
pub trait Executor: Send {
    /// Runs a batch to its end and takes the inputs out of it. Afterwards its requests are parked
    /// exactly when the result is [`BatchOutput::Parked`].
    fn run(&mut self, job: &mut Job) -> Ran;

    /// Drops the parked activations of a request that will not be continued. Does nothing when
    /// there are none.
    fn release(&mut self, request: RequestId);

    /// Makes a variant resident ahead of its first batch and returns the time it took.
    ///
    /// # Errors
    /// As the load of a batch.
    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError>;

    /// What the memory holds.
    fn residency(&self) -> Residency;

    /// Lets go of a variant, pinned or not. Nothing is done where there are no models.
    fn unload(&mut self, variant: VariantId) {
        let _ = variant;
    }

    /// Runs batches on other weights of a variant from now on, if it is resident. What is parked
    /// goes on with the weights it began with. Nothing is done where there are no models.
    fn replace(&mut self, variant: VariantId, model: &Arc<LoadedModel>) {
        let _ = (variant, model);
    }

    /// The models, for the thread that loads beside the batches; none where there is nothing to
    /// load.
    fn models(&self) -> Option<Arc<ModelCache>> {
        None
    }
}

/// What came of running a [`Job`].
#[derive(Debug)]
pub struct Ran {
    /// Its answers, or why there are none.
    pub result: Result<BatchOutput, ExecuteError>,
    /// Time spent on assembly, stages, head and output.
    pub compute: Micros,
    /// Time spent making the variant resident; zero when it was.
    pub load: Micros,
}
