//! The status of a pool, for operators.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A pool at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// The pool's name.
    pub pool: String,
    /// Label of the active policy.
    pub policy: String,
    /// Requests that have not ended.
    pub live: usize,
    /// Requests that wait for a decision.
    pub pending: usize,
    /// Windows opened since the start.
    pub windows: u64,
    /// Requests taken in since the start.
    pub accepted: u64,
    /// Requests ended since the start.
    pub ended: u64,
    /// Accepted minus ended minus live: always 0.
    pub imbalance: i64,
    /// Ended requests by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Windows that a policy failed, by kind.
    pub faults: BTreeMap<String, u64>,
    /// The last fault, in words.
    pub last_fault: Option<String>,
    /// The longest turn of the driver since the start, in microseconds: no request is decided meanwhile.
    #[serde(default)]
    pub slowest_turn_us: u64,
    /// No request is accepted any more.
    pub draining: bool,
    /// The state of each app's models, in the words of the repository index.
    pub apps: BTreeMap<String, String>,
    /// Variants whose last load failed, as `app/variant`, and why.
    #[serde(default)]
    pub failed_variants: BTreeMap<String, String>,
    /// The models of each worker.
    pub workers: Vec<WorkerStatus>,
}

/// A worker's model memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// It takes batches: it was not lost, or it is back.
    #[serde(default)]
    pub up: bool,
    /// The address of its server; empty while no server has its slot. None: it runs in this process.
    #[serde(default)]
    pub address: Option<String>,
    /// Its budget.
    pub memory_bytes: u64,
    /// The part of it that neither models nor parked activations take.
    pub free_bytes: u64,
    /// Its models.
    pub resident: Vec<ResidentStatus>,
}

/// A model on a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResidentStatus {
    /// `app/variant`.
    pub variant: String,
    /// Its memory.
    pub bytes: u64,
    /// It is never evicted.
    pub pinned: bool,
}
