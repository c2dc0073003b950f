//! Scenarios: all inputs of a run except the policy and the seed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, CatalogError};
use switchyard_core::ids::WorkerId;
use switchyard_core::policy::PolicyFault;
use switchyard_core::time::{Micros, Time};
use thiserror::Error;

use crate::hardware::{ServiceError, ServiceTimes, UnprofiledBatch};
use crate::links::{LinkTimes, RandomDeaths};
use crate::source::Sources;
use crate::votes::RecordedVotes;
use crate::workload::{Workload, WorkloadError};

/// A catalog, a workload, and the behaviour of workers and evidence that the catalog leaves open.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Apps, variants, workers, profile.
    pub catalog: Arc<Catalog>,
    /// The requests.
    pub workload: Workload,
    /// End of the arrivals, exclusive; a trace may end earlier.
    pub duration: Micros,
    /// Most arrivals.
    pub requests_max: u64,
    /// The first arrivals, which no metric of requests counts: a warm-up.
    pub skip_first: u64,
    /// Shares of the classes among an app's requests, by app; by default those of its test set.
    pub class_mixes: Vec<Vec<f64>>,
    /// The law of service times.
    pub service: ServiceTimes,
    /// Delay of evidence, and agreement of its votes.
    pub evidence: EvidenceTimes,
    /// Recorded votes by app; without them votes are drawn from the app's SneakPeek model.
    pub votes: Vec<Option<Arc<RecordedVotes>>>,
    /// Whether every variant that fits is resident at the start, as on the live server. Otherwise the
    /// first batch of each variant waits for its load.
    pub preload: bool,
    /// Times at which workers are away.
    pub outages: Vec<Outage>,
    /// Deaths until the last arrival; with outages, the end that comes first brings a worker back.
    pub deaths: Option<RandomDeaths>,
    /// Links to the workers; none: they are in this process.
    pub links: Option<LinkTimes>,
    /// Time of a request from its client to the server and of its answer back, together. Latencies of
    /// metrics have it; the server does not know it, and counts deadlines from the arrival there.
    pub wire: Micros,
    /// Share of the batches that fail at their end, although the worker serves on. Their requests
    /// are tried again.
    pub failing_batches: f64,
    /// Bounds of the scheduler; its seed is the run's.
    pub scheduler: SchedulerConfig,
    /// Time after the last arrival in which the policy must serve all requests. After it, the policy
    /// is removed and the native fallback serves the rest.
    pub drain_max: Micros,
}

/// A worker that goes away and comes back empty. The requests of its running batch are tried again,
/// its parked requests start over, its resident variants are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The worker.
    pub worker: WorkerId,
    /// When it goes away.
    pub from: Time,
    /// When it is back.
    pub to: Time,
}

/// Delay and votes of neighbours. They are counted only for policies that want evidence, in apps that
/// have a SneakPeek model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvidenceTimes {
    /// Least time from the arrival to the counts.
    pub delay_us: Micros,
    /// A uniform share of this is added.
    pub jitter_us: Micros,
    /// Probability that a neighbour votes for the best guess, instead of a class drawn by frequency.
    pub agreement: f64,
}

/// Why a scenario cannot be run, or a run had to stop.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimError {
    /// The catalog contradicts itself.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The workload is wrong, or does not fit the catalog.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The shares of an app's classes are wrong.
    #[error("class mix of {app}: {reason}")]
    ClassMix {
        /// The app.
        app: String,
        /// The reason.
        reason: &'static str,
    },
    /// The recorded votes of an app do not fit it.
    #[error("votes of {app}: {reason}")]
    Votes {
        /// The app.
        app: String,
        /// The reason.
        reason: String,
    },
    /// The law of service times is wrong.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A number of the links or of the deaths is wrong.
    #[error("{part}.{field}: {reason}")]
    Fleet {
        /// `links` or `deaths`.
        part: &'static str,
        /// The field.
        field: &'static str,
        /// The allowed range.
        reason: &'static str,
    },
    /// A plan contains a batch that the profile does not.
    #[error(transparent)]
    Unprofiled(#[from] UnprofiledBatch),
    /// The policy could not be made or configured.
    #[error("policy {policy}: {fault}")]
    Policy {
        /// Its name.
        policy: String,
        /// Its answer.
        fault: PolicyFault,
    },
    /// A defect of the core or the simulator: an invariant does not hold.
    #[error("at {at_us} us with seed {seed}: {violation}")]
    Invariant {
        /// Virtual time.
        at_us: u64,
        /// Seed of the run.
        seed: u64,
        /// The violation.
        violation: String,
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
            skip_first: 0,
            class_mixes: Vec::new(),
            service: ServiceTimes::Profiled,
            evidence: EvidenceTimes::default(),
            votes: Vec::new(),
            preload: true,
            outages: Vec::new(),
            deaths: None,
            links: None,
            wire: Micros::ZERO,
            failing_batches: 0.0,
            scheduler: SchedulerConfig {
                // The smallest value at which windows reuse their buffers.
                history: 1,
                ..SchedulerConfig::default()
            },
            drain_max: Micros::from_millis(60_000),
        }
    }

    /// Ends arrivals with the longest trace of the workload; without a trace, nothing changes.
    ///
    /// # Errors
    /// A trace file cannot be read.
    pub fn until_trace_ends(&mut self) -> Result<(), WorkloadError> {
        if let Some(length) = self.workload.trace_length()? {
            self.duration = length;
        }
        Ok(())
    }

    /// Checks every input before the first request arrives. Reads the workload's traces.
    ///
    /// # Errors
    /// Names the first part that is wrong.
    pub fn validate(&self) -> Result<(), SimError> {
        self.service.validate()?;
        self.check_fleet()?;
        self.catalog.validate()?;
        self.check_votes()?;
        Sources::try_new(&self.workload, &self.catalog, 0)?;
        self.class_shares()?;
        Ok(())
    }

    /// Checks links and deaths.
    pub(crate) fn check_fleet(&self) -> Result<(), SimError> {
        let links = self.links.map_or(Ok(()), |links| links.check());
        let deaths = self.deaths.map_or(Ok(()), |deaths| deaths.check());
        for (part, checked) in [("links", links), ("deaths", deaths)] {
            checked.map_err(|(field, reason)| SimError::Fleet {
                part,
                field,
                reason,
            })?;
        }
        Ok(())
    }

    /// Checks that recorded votes have a row per class of their app.
    fn check_votes(&self) -> Result<(), SimError> {
        for (app, votes) in self.catalog.apps.iter().zip(&self.votes) {
            let Some(votes) = votes else { continue };
            let (recorded, classes) = (votes.classes(), app.classes.len());
            if recorded != classes {
                return Err(SimError::Votes {
                    app: app.name.clone(),
                    reason: format!("{recorded} classes, must be {classes}"),
                });
            }
        }
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
                false => "needs one share per class",
                true if !usable || mix.iter().sum::<f64>() <= 0.0 => {
                    "needs shares of at least 0, one of them above 0"
                }
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
