//! The state of the server and its pools, as JSON.

use serde::{Deserialize, Serialize};

use crate::driver::PoolStatus;
use crate::policies::PoliciesStatus;
use crate::reloads::Reload;
use crate::shadow::ShadowStatus;

/// `GET /admin/v1/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// The server's version.
    pub version: String,
    /// Microseconds since it began.
    pub now_us: u64,
    /// Every pool has its models and its policy.
    pub ready: bool,
    /// The reason if it is not ready.
    pub waits_for: Option<String>,
    /// Its pools.
    pub pools: Vec<PoolReport>,
}

/// One pool of [`ServerStatus`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Requests and windows.
    #[serde(flatten)]
    pub driver: PoolStatus,
    /// Versions and swaps.
    pub policies: PoliciesStatus,
    /// Changed weights and their results, oldest first.
    pub reloads: Vec<Reload>,
    /// Its shadow, if it has one.
    pub shadow: Option<ShadowStatus>,
}
