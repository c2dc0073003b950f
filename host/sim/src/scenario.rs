//! What is simulated: everything but the policy and the seed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, CatalogError};
use switchyard_core::policy::PolicyFault;
use switchyard_core::time::Micros;
use thiserror::Error;

use crate::hardware::{NoCell, ServiceError, ServiceTimes};
use crate::source::Sources;
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
    /// Shares of the classes among an app's requests, by app; an app without any has those of
    /// its test set.
    pub class_mixes: Vec<Vec<f64>>,
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
    /// The shares of an app's classes make no sense.
    #[error("class mix of {app}: {reason}")]
    ClassMix {
        /// The app.
        app: String,
        /// What is wrong with it.
        reason: &'static str,
    },
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
            class_mixes: Vec::new(),
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

impl Scenario {
    /// Checks everything that can be wrong before the first request arrives. Reads the
    /// workload's traces.
    ///
    /// # Errors
    /// The first part that makes no sense, by name.
    pub fn validate(&self) -> Result<(), SimError> {
        self.service.validate()?;
        self.catalog.validate()?;
        Sources::try_new(&self.workload, &self.catalog, 0)?;
        self.class_shares()?;
        Ok(())
    }

    /// Shares of the classes among each app's requests.
    pub(crate) fn class_shares(&self) -> Result<Vec<&[f64]>, SimError> {
        let mixes = self.class_mixes.iter().map(Vec::as_slice);
        let mixes = mixes.chain(std::iter::repeat(&[][..]));
        let apps = self.catalog.apps.iter().zip(mixes);
        apps.map(|(app, mix)| {
            if mix.is_empty() {
                return Ok(app.frequencies.as_slice());
            }
            let usable = mix.iter().all(|share| share.is_finite() && *share >= 0.0);
            let reason = match mix.len() == app.classes.len() {
                false => "must have one share per class",
                true if !usable || mix.iter().sum::<f64>() <= 0.0 => "must be shares",
                true => return Ok(mix),
            };
            let app = app.name.clone();
            Err(SimError::ClassMix { app, reason })
        })
        .collect()
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
