//! The requests whose activations a server keeps, by the numbers that it knows them by.
//!
//! Each range that begins at the first stage takes new numbers. So neither a release that comes late nor a
//! server that was started anew can reach activations of another try.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use switchyard_core::ids::RequestId;
use switchyard_executor::{ExecuteError, Job};
use switchyard_protocol::{StageCall, StageWork};

/// The rows that a server keeps for one connection.
#[derive(Debug)]
pub(crate) struct ParkedRows {
    session: u64,
    next: AtomicU64,
    rows: Mutex<HashMap<RequestId, u64>>,
}

// === impl ParkedRows ===

impl ParkedRows {
    pub(crate) fn new() -> Self {
        Self {
            // The standard library's only source of unforeseeable numbers.
            session: RandomState::new().build_hasher().finish(),
            next: AtomicU64::new(0),
            rows: Mutex::default(),
        }
    }

    /// The call of a batch; `None` if it runs from the first stage to an exit.
    ///
    /// # Errors
    /// The activations of a row are not at the server.
    pub(crate) fn call(&self, job: &Job) -> Result<Option<StageCall>, ExecuteError> {
        let work = match (job.from_stage, job.exit) {
            (0, Some(_)) => return Ok(None),
            (from_stage, Some(_)) => StageWork::Answer { from_stage },
            (from_stage, None) => StageWork::Park {
                from_stage,
                to_stage: job.to_stage,
            },
        };
        let rows = match job.from_stage {
            0 => self.number(job.rows.len()),
            _ => self.numbers(job)?,
        };
        Ok(Some(StageCall {
            session: self.session,
            rows,
            work,
        }))
    }

    /// The call that forgets rows.
    pub(crate) fn release(&self, rows: Vec<u64>) -> StageCall {
        StageCall {
            session: self.session,
            rows,
            work: StageWork::Release,
        }
    }

    /// The server has parked the rows of a batch.
    pub(crate) fn park(&self, job: &Job, call: &StageCall) {
        let requests = job.rows.iter().map(|row| row.request);
        self.rows().extend(requests.zip(call.rows.iter().copied()));
    }

    /// The server does not have the rows of a batch any more.
    pub(crate) fn forget(&self, job: &Job) {
        let mut rows = self.rows();
        for row in &job.rows {
            rows.remove(&row.request);
        }
    }

    pub(crate) fn take(&self, request: RequestId) -> Option<u64> {
        self.rows().remove(&request)
    }

    fn number(&self, count: usize) -> Vec<u64> {
        let count = count as u64;
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        (first..first + count).collect()
    }

    fn numbers(&self, job: &Job) -> Result<Vec<u64>, ExecuteError> {
        let rows = self.rows();
        let number = |request| {
            let number = rows.get(&request).copied();
            number.ok_or_else(|| ExecuteError::NotParked {
                request,
                reason: "not parked on its worker".to_owned(),
            })
        };
        job.rows.iter().map(|row| number(row.request)).collect()
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<RequestId, u64>> {
        // Whole at every point where a panic could strike.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
