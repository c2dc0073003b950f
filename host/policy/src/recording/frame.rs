//! The entries of a recording.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::policy::{Description, WindowFields};

use crate::history::PolicyVersion;
use crate::limits::Limits;

/// One entry of a recording, in order of time. Part of the format, and so are the core's types in
/// its fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Frame {
    /// A scheduler starts: its windows count from 1 again, on a new clock.
    Start(Box<Header>),
    /// The policy was replaced; none: only the native fallback serves.
    Policy(Option<PolicyRecord>),
    /// The catalog was replaced.
    Catalog(Box<Catalog>),
    /// A window and its plan.
    Decision(#[serde(with = "shared")] Arc<Decision>),
    /// The number of windows that are missing here, because the recorder could not keep up.
    Gap(u64),
}

/// The configuration of a policy and its pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The recording program and its version.
    pub made_by: String,
    /// Whether it was a simulation.
    pub simulated: bool,
    /// Name of the pool.
    pub pool: String,
    /// Seed of the policies' random numbers.
    pub seed: u64,
    /// Longest time one window call may take, in microseconds.
    pub window_budget_us: u64,
    /// Largest linear memory of a policy.
    pub policy_memory_bytes: u64,
    /// The apps, variants and workers.
    pub catalog: Catalog,
    /// The active policy; none: only the native fallback serves.
    pub policy: Option<PolicyRecord>,
}

/// A policy by its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// `name@version`, from its description.
    pub label: String,
    /// Content hash of component and settings together, in hexadecimal. Empty for a native policy.
    pub hash: String,
    /// Content hash of the component only, in hexadecimal. Empty for a native policy.
    pub code: String,
    /// Its settings, JSON.
    pub settings: String,
    /// The window fields that it asks for.
    pub wants: WindowFields,
}

/// Encodes a shared decision like the decision itself.
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
    /// The header of a live pool in which only the native fallback serves.
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

    /// Sets the seed of the pool's policies.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The limits of the pool's policies. Limits that are not recorded have their defaults.
    pub fn limits(&self) -> Limits {
        Limits {
            window_budget: Duration::from_micros(self.window_budget_us),
            memory_bytes: usize::try_from(self.policy_memory_bytes).unwrap_or(usize::MAX),
            ..Limits::default()
        }
    }

    /// Sets the limits of the pool's policies.
    pub fn with_limits(mut self, limits: &Limits) -> Self {
        let budget_us = limits.window_budget.as_micros();
        self.window_budget_us = u64::try_from(budget_us).unwrap_or(u64::MAX);
        self.policy_memory_bytes = limits.memory_bytes as u64;
        self
    }
}

// === impl PolicyRecord ===

impl PolicyRecord {
    /// The record of a loaded component.
    pub fn of(version: &PolicyVersion, description: &Description) -> Self {
        Self {
            hash: version.hash.to_hex(),
            code: version.code.to_hex(),
            settings: version.settings.clone(),
            ..Self::native(description)
        }
    }

    /// The record of a policy that is part of the host.
    pub fn native(description: &Description) -> Self {
        Self {
            label: description.label(),
            wants: description.wants,
            ..Self::default()
        }
    }
}
