//! The same arrivals in virtual time, on a simulated copy of the server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{FaultKind, PolicyFault};
use switchyard_core::time::Micros;
use switchyard_policy::loader::{Loader, LoaderOptions, PolicyTrial};
use switchyard_policy::{EngineOptions, Limits, PolicyEngine};
use switchyard_profile::Percentile;
use switchyard_sim::workload::{Apps, Arrivals, Deadline, Recorded, RequestStream, Trace};
use switchyard_sim::{Contender, Quantile, Scenario, ServiceTimes, Workload, run};

use super::error::DemoError;
use super::workload::Request;
use switchyard_server::assembly::{Measured, PoolPlan};

/// The server's pool for the simulator.
pub(super) struct Twin {
    catalog: Arc<Catalog>,
    class_mixes: Vec<Vec<f64>>,
    scheduler: SchedulerConfig,
    limits: Limits,
    service: ServiceTimes,
}

/// Results of one policy on the phase's arrivals, simulated.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Simulated {
    /// Answers in time per second.
    pub(crate) goodput_per_s: f64,
    /// Share of right answers, drawn from the confusion matrices.
    pub(crate) accuracy: f64,
    /// Mean utility of a request: right answers, reduced by their lateness.
    pub(crate) utility: f64,
    /// Share of requests not answered in time.
    pub(crate) violations: f64,
    /// Median latency in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

// === impl Twin ===

impl Twin {
    /// The pool's catalog and scheduler. Service times are drawn between the measured percentiles.
    pub(super) fn new(plan: &PoolPlan, measured: &Measured) -> Result<Self, DemoError> {
        let quantile = |percentile: Percentile| {
            let catalog = plan
                .catalog(&measured.at(percentile))
                .map_err(DemoError::input)?;
            Ok(Quantile {
                quantile: percentile.share(),
                profile: catalog.profile,
            })
        };
        let quantiles = [Percentile::P50, Percentile::P95, Percentile::P99].map(quantile);
        let quantiles = quantiles.into_iter().collect::<Result<_, DemoError>>()?;
        Ok(Self {
            catalog: Arc::new(plan.catalog(measured).map_err(DemoError::input)?),
            class_mixes: plan.class_mixes(),
            scheduler: SchedulerConfig {
                history: 1,
                ..plan.config.scheduler()
            },
            limits: plan.config.limits(),
            service: ServiceTimes::Percentiles(quantiles),
        })
    }

    /// Runs a policy on a phase.
    ///
    /// # Errors
    /// The policy cannot be loaded, or the pool cannot be simulated.
    pub(super) fn run(
        &self,
        policy: &Path,
        phase: &[Request],
        length: Duration,
        seed: u64,
    ) -> Result<Simulated, DemoError> {
        let scenario = Scenario {
            duration: Micros(micros(length)),
            class_mixes: self.class_mixes.clone(),
            service: self.service.clone(),
            scheduler: self.scheduler.clone(),
            ..Scenario::new(Arc::clone(&self.catalog), self.workload(phase))
        };
        let contender = self.contender(policy)?;
        let report = run(&scenario, &contender, seed).map_err(DemoError::input)?;
        let total = report.total;
        Ok(Simulated {
            goodput_per_s: total.in_time as f64 / length.as_secs_f64().max(f64::MIN_POSITIVE),
            accuracy: total.accuracy_sampled.unwrap_or_default(),
            utility: total.utility_sampled,
            violations: total.violation_ratio,
            p50_ms: total.latency.p50_ms,
            p95_ms: total.latency.p95_ms,
            p99_ms: total.latency.p99_ms,
        })
    }

    fn workload(&self, phase: &[Request]) -> Workload {
        let recorded = |request: &Request| {
            Some(Recorded {
                at_us: micros(request.at),
                app: self.catalog.apps.get(request.app)?.name.clone(),
                deadline_us: Some(Micros(micros(request.deadline))),
                length: None,
            })
        };
        Workload {
            streams: vec![RequestStream {
                apps: Apps::All,
                arrivals: Arrivals::Trace(Trace {
                    requests: Some(phase.iter().filter_map(recorded).collect()),
                    ..Trace::default()
                }),
                deadline: Deadline::Slo,
                lengths: Vec::new(),
                known: false,
            }],
        }
    }

    /// The component, on fuel.
    fn contender(&self, policy: &Path) -> Result<Contender, DemoError> {
        let engine =
            PolicyEngine::deterministic(&EngineOptions::default()).map_err(DemoError::input)?;
        let options = LoaderOptions {
            cache_dir: None,
            limits: self.limits.clone(),
            seed: 0,
        };
        let loader = Loader::new(engine, options);
        let policy = policy.to_owned();
        let name = policy.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Contender {
            name: name.into_owned(),
            make: Arc::new(move |catalog| {
                let trial = PolicyTrial {
                    catalog,
                    windows: &[],
                };
                let loaded = loader.load(&policy, trial);
                loaded
                    .map(|loaded| loaded.policy)
                    .map_err(|error| PolicyFault {
                        kind: FaultKind::Failed,
                        reason: error.to_string(),
                    })
            }),
            foresight: None,
        })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
