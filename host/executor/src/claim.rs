//! Batches that are cancelled while they wait for their worker.

use std::sync::{Arc, Mutex, PoisonError};

use crate::job::{Job, RowTensors};

/// The right to cancel a batch: dropping it cancels the batch, unless the worker has begun it.
#[derive(Debug)]
#[must_use = "dropping it cancels the batch"]
pub struct Claim(WaitingInputs);

/// The inputs of a batch that waits. The worker takes them to run the batch, its claim to cancel it.
#[derive(Clone, Debug)]
pub(crate) struct WaitingInputs(Arc<Mutex<Option<Vec<Option<RowTensors>>>>>);

// === impl Claim ===

impl Claim {
    pub(crate) fn on(inputs: WaitingInputs) -> Self {
        Self(inputs)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // At once: the call that pays for this memory ends.
        drop(self.0.take());
    }
}

// === impl WaitingInputs ===

impl WaitingInputs {
    /// Takes the inputs out of a batch.
    pub(crate) fn of(job: &mut Job) -> Self {
        let inputs = job.rows.iter_mut().map(|row| row.input.take());
        Self(Arc::new(Mutex::new(Some(inputs.collect()))))
    }

    /// Puts the inputs back into their batch. False: the batch was cancelled.
    pub(crate) fn put_back(&self, job: &mut Job) -> bool {
        let Some(inputs) = self.take() else {
            return false;
        };
        for (row, input) in job.rows.iter_mut().zip(inputs) {
            row.input = input;
        }
        true
    }

    fn take(&self) -> Option<Vec<Option<RowTensors>>> {
        // Whole at every point where a panic could strike.
        let mut inputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inputs.take()
    }
}
