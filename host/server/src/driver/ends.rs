//! The events of workers, in the words of the core.

use switchyard_core::event::BatchEnd;
use switchyard_core::ids::WorkerId;
use switchyard_executor::{BatchOutput, ExecuteError, WorkerEvent};

/// The end of a batch whose worker is lost.
pub(super) fn lost(reason: impl Into<String>) -> BatchEnd {
    let reason = reason.into();
    BatchEnd::Lost { reason }
}

/// The end of a batch for the core.
pub(super) fn end_of(result: Result<BatchOutput, ExecuteError>) -> BatchEnd {
    let Err(error) = result else {
        return BatchEnd::Done;
    };
    if matches!(error, ExecuteError::Stopped) || error.is_fatal() {
        return lost(error.to_string());
    }
    let reason = error.to_string();
    let repeatable = error.is_repeatable();
    BatchEnd::Failed { reason, repeatable }
}

/// The worker that reports an event.
pub(super) fn worker_of(event: &WorkerEvent) -> WorkerId {
    match event {
        WorkerEvent::Finished(finished) => finished.worker,
        WorkerEvent::Preloaded(preloaded) => preloaded.worker,
        WorkerEvent::Unloaded(unloaded) => unloaded.worker,
        WorkerEvent::Down(down) | WorkerEvent::Leaving(down) => down.worker,
    }
}
