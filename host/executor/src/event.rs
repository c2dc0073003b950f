//! The events of a worker.

use switchyard_core::ids::{VariantId, WorkerId};
use switchyard_core::time::Micros;

use crate::error::CacheError;
use crate::job::{Finished, Residency};

/// An event of a worker, reported by its own threads.
#[derive(Debug)]
pub enum WorkerEvent {
    /// A batch has ended.
    Finished(Finished),
    /// A preload, or a load ahead of time, has ended.
    Preloaded(Preloaded),
    /// A variant was unloaded.
    Unloaded(Unloaded),
    /// The worker is lost. The batch at fault was reported before; every other one fails with
    /// [`ExecuteError::Stopped`](crate::error::ExecuteError::Stopped).
    Down(WorkerDown),
    /// The worker takes no more batches. The one that runs is reported as ever.
    Leaving(WorkerDown),
}

/// The end of a load that no batch waited for.
#[derive(Debug)]
pub struct Preloaded {
    /// The worker.
    pub worker: WorkerId,
    /// The variant.
    pub variant: VariantId,
    /// The time it took, zero if it was resident already; or why it is not resident.
    pub result: Result<Micros, CacheError>,
    /// [`Worker::preload`](crate::worker::Worker::preload) asked for it; otherwise it was loaded
    /// ahead of time.
    pub asked: bool,
    /// The worker's memory now.
    pub residency: Residency,
}

/// The end of an unload.
#[derive(Debug)]
pub struct Unloaded {
    /// The worker.
    pub worker: WorkerId,
    /// The variant.
    pub variant: VariantId,
    /// The worker's memory now.
    pub residency: Residency,
}

/// The absence of a worker: it is lost, or takes no more batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerDown {
    /// The worker.
    pub worker: WorkerId,
    /// The reason.
    pub reason: String,
}
