//! What a recording consists of.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::policy::{Description, Sights};

use crate::history::PolicyVersion;
use crate::limits::Limits;

/// One entry of a recording, in the order in which things happened. Part of the format: what
/// is inside it in the core as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Frame {
    /// A scheduler begins: its windows count from 1 again, on a new clock.
    Start(Box<Header>),
    /// Another policy is active; none: only the native fallback serves.
    Policy(Option<PolicyRecord>),
    /// There is something else to choose from.
    Catalog(Box<Catalog>),
    /// A window and its plan.
    Decision(#[serde(with = "shared")] Arc<Decision>),
    /// So many windows are missing here: whoever recorded had no time for them.
    Gap(u64),
}

/// All that a policy is configured with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The program that recorded, and its version.
    pub made_by: String,
    /// It was a simulation.
    pub simulated: bool,
    /// Name of the pool.
    pub pool: String,
    /// Seed of its policies' random numbers.
    pub seed: u64,
    /// Longest time one window call may take, in microseconds.
    pub window_budget_us: u64,
    /// Memory that a policy may have.
    pub policy_memory_bytes: u64,
    /// What there is to choose from.
    pub catalog: Catalog,
    /// The policy that is active; none: only the native fallback serves.
    pub policy: Option<PolicyRecord>,
}

/// A policy by its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// `name@version`, as it describes itself.
    pub label: String,
    /// Content hash of component and settings together, hexadecimal; empty for a native policy.
    pub hash: String,
    /// Content hash of the component alone, hexadecimal; empty for a native policy.
    pub code: String,
    /// Its settings, JSON.
    pub settings: String,
    /// What its windows carry.
    pub wants: Sights,
}

/// A shared decision as the decision itself.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use switchyard_core::decision::Decision;

    pub(super) fn serialize<S: Serializer>(
        decision: &Arc<Decision>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Decision::serialize(decision, to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Arc<Decision>, D::Error> {
        Decision::deserialize(from).map(Arc::new)
    }
}

// === impl Header ===

impl Header {
    /// A recording of a live pool, with nothing but the fallback active yet.
    pub fn new(pool: &str, catalog: Catalog) -> Self {
        Self {
            made_by: concat!("switchyard ", env!("CARGO_PKG_VERSION")).to_owned(),
            simulated: false,
            pool: pool.to_owned(),
            seed: 0,
            window_budget_us: 0,
            policy_memory_bytes: 0,
            catalog,
            policy: None,
        }
        .with_limits(&Limits::default())
    }

    /// Records the seed of a pool's policies.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What a pool's policies may take, as far as it was recorded.
    pub fn limits(&self) -> Limits {
        Limits {
            window_budget: Duration::from_micros(self.window_budget_us),
            memory_bytes: usize::try_from(self.policy_memory_bytes).unwrap_or(usize::MAX),
            ..Limits::default()
        }
    }

    /// Records what a pool's policies may take.
    pub fn with_limits(mut self, limits: &Limits) -> Self {
        let budget_us = limits.window_budget.as_micros();
        self.window_budget_us = u64::try_from(budget_us).unwrap_or(u64::MAX);
        self.policy_memory_bytes = limits.memory_bytes as u64;
        self
    }
}

// === impl PolicyRecord ===

impl PolicyRecord {
    /// A component that was loaded.
    pub fn of(version: &PolicyVersion, description: &Description) -> Self {
        Self {
            hash: version.hash.to_hex(),
            code: version.code.to_hex(),
            settings: version.settings.clone(),
            ..Self::native(description)
        }
    }

    /// A policy that is part of the host.
    pub fn native(description: &Description) -> Self {
        Self {
            label: description.label(),
            wants: description.wants,
            ..Self::default()
        }
    }
}
