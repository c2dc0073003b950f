//! What is simulated: everything but the policy and the seed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, CatalogError};
use switchyard_core::policy::PolicyFault;
use switchyard_core::time::Micros;
use thiserror::Error;

use crate::hardware::{NoCell, ServiceError, ServiceTimes};
use crate::workload::{Workload, WorkloadError};

/// A yard, what arrives at it, and how the world behaves where the catalog does not say.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Apps, variants, workers, profile.
    pub catalog: Arc<Catalog>,
    /// What arrives.
    pub workload: Workload,
    /// When arrivals end; a trace may end earlier.
    pub duration: Micros,
    /// Arrivals after which they end as well.
    pub requests_max: u64,
    /// How long batches take.
    pub service: ServiceTimes,
    /// When evidence is ready, and how much its votes agree.
    pub evidence: EvidenceTimes,
    /// Every variant that fits is resident at the start, as on the live server. Otherwise the
    /// first batch of each pays for its load.
    pub preload: bool,
    /// Bounds of the scheduler; its seed is the run's.
    pub scheduler: SchedulerConfig,
    /// How long after the last arrival the policy may take to serve what is left. Then it is
    /// removed and the native fallback finishes.
    pub drain_max: Micros,
}

/// When neighbours are counted and how they vote. Counted only for policies that want evidence,
/// in apps that have a SneakPeek model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvidenceTimes {
    /// From the arrival to the counts, at least.
    pub delay_us: Micros,
    /// A uniform share of this comes on top.
    pub jitter_us: Micros,
    /// Chance that a neighbour votes for the best guess instead of any class by its frequency.
    pub agreement: f64,
}

/// Why a scenario cannot be run, or a run had to stop.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimError {
    /// The catalog does not hold together.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The workload makes no sense, or not with this catalog.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The law of service times makes no sense.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A plan asked for a run that the profile does not know.
    #[error(transparent)]
    NoCell(#[from] NoCell),
    /// The policy could not be made or configured.
    #[error("policy {policy}: {fault}")]
    Policy {
        /// As it was asked for.
        policy: String,
        /// What it said.
        fault: PolicyFault,
    },
    /// A defect of the core or the simulator: the books do not balance.
    #[error("at {at_us} us with seed {seed}: {what}")]
    Invariant {
        /// Virtual time.
        at_us: u64,
        /// Seed of the run.
        seed: u64,
        /// What does not hold.
        what: String,
    },
}

// === impl Scenario ===

impl Scenario {
    /// A scenario of 60 virtual seconds with profiled service times and warm models.
    pub fn new(catalog: Arc<Catalog>, workload: Workload) -> Self {
        Self {
            catalog,
            workload,
            duration: Micros::from_millis(60_000),
            requests_max: u64::MAX,
            service: ServiceTimes::Profiled,
            evidence: EvidenceTimes::default(),
            preload: true,
            scheduler: SchedulerConfig {
                // The fewest with which windows reuse their buffers.
                history: 1,
                ..SchedulerConfig::default()
            },
            drain_max: Micros::from_millis(60_000),
        }
    }
}

impl Default for EvidenceTimes {
    fn default() -> Self {
        Self {
            delay_us: Micros(1_000),
            jitter_us: Micros::ZERO,
            agreement: 0.7,
        }
    }
}
