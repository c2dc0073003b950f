//! How a pool is doing, for operators.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A pool at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// The pool's name.
    pub pool: String,
    /// Label of whoever is asked first.
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
    /// Accepted minus ended minus live: 0, always.
    pub imbalance: i64,
    /// Ended requests by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Windows that a policy failed, by kind.
    pub faults: BTreeMap<String, u64>,
    /// The last of them, in words.
    pub last_fault: Option<String>,
    /// No request is accepted any more.
    pub draining: bool,
}
