//! What policies are simulated with: the catalog of a configured pool with any machine's
//! latencies, or that of an imported profile.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_policy::Limits;
use switchyard_profile::{Percentile, ProfileFile};
use switchyard_sim::{Quantile, ServiceTimes};

use super::SimulateArgs;
use crate::commands::{Failure, read_config};
use switchyard_server::assembly::{Measured, PoolPlan};
use switchyard_server::config::{AppConfig, PoolConfig, WorkerConfig};

/// A law of service times, as it is typed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Service {
    /// One that needs nothing else.
    Law(ServiceTimes),
    /// Between the profile's own percentiles.
    Percentiles,
}

/// One pool, ready to be simulated.
pub(super) struct Yard {
    /// Name of the pool.
    pub(super) pool: String,
    pub(super) catalog: Arc<Catalog>,
    pub(super) scheduler: SchedulerConfig,
    pub(super) class_mixes: Vec<Vec<f64>>,
    pub(super) limits: Limits,
    pub(super) policies: PathBuf,
    /// The whole profile at the percentiles it holds.
    quantiles: Vec<Quantile>,
}

// === impl Yard ===

impl Yard {
    pub(super) fn read(args: &SimulateArgs) -> Result<Self, Failure> {
        let mut config = read_config(args.config.as_deref())?;
        if let Some(zoo) = &args.zoo {
            for app in &mut config.apps {
                app.zoo.clone_from(zoo);
            }
        }
        if let Some(folder) = &args.folder {
            config.policies.dir.clone_from(folder);
        }
        let mut file = ProfileFile::load(&args.profile).map_err(Failure::input)?;
        let named = |error: &dyn std::fmt::Display| {
            Failure::input(format!("{}: {error}", args.profile.display()))
        };
        let pool = config
            .pools
            .first()
            .ok_or_else(|| Failure::input("the configuration has no pool"))?;
        // An imported profile brings its own apps: no zoo has them. Those that a configuration
        // names are looked for there first.
        let brings_apps = match &args.config {
            None => file.has_apps(),
            Some(_) => pool.apps.iter().all(|name| file.app(name).is_some()),
        };
        let plan = if brings_apps {
            if args.config.is_some() {
                narrow(&mut file, pool, &config.apps);
            }
            None
        } else {
            Some(PoolPlan::first(&config).map_err(Failure::input)?)
        };
        let catalog_at = |percentile| match &plan {
            Some(plan) => {
                let measured = Measured::elsewhere(file.clone(), percentile, &args.profile);
                plan.catalog(&measured).map_err(|error| named(&error))
            }
            None => file.to_catalog(percentile).map_err(|error| named(&error)),
        };
        let mut catalog = catalog_at(args.percentile.into())?;
        // The kinds of a profile that brings its apps are none that a configuration could name.
        let configured = args.config.as_ref().filter(|_| brings_apps);
        let configured = configured.map(|_| pool.workers.len());
        if let Some(workers) = args.workers.map(|count| count as usize).or(configured) {
            catalog.workers = repeated(&catalog.workers, workers);
        }
        if configured.is_some() {
            bound(&mut catalog.workers, pool, &config.workers);
        }
        let quantile = |percentile: Percentile| {
            Ok(Quantile {
                quantile: percentile.share(),
                profile: catalog_at(percentile)?.profile,
            })
        };
        let quantiles = [Percentile::P50, Percentile::P95, Percentile::P99];
        Ok(Self {
            pool: pool.name.clone(),
            catalog: Arc::new(catalog),
            scheduler: SchedulerConfig {
                // The fewest with which windows reuse their buffers; nobody asks for them.
                history: 1,
                ..pool.scheduler()
            },
            class_mixes: plan.as_ref().map(PoolPlan::class_mixes).unwrap_or_default(),
            limits: pool.limits(),
            policies: config.policies.dir.clone(),
            quantiles: quantiles
                .map(quantile)
                .into_iter()
                .collect::<Result<_, Failure>>()?,
        })
    }

    /// The law with this profile's numbers.
    pub(super) fn service(&self, service: &Service) -> Result<ServiceTimes, Failure> {
        let law = match service {
            Service::Law(law) => law.clone(),
            Service::Percentiles => ServiceTimes::Percentiles(self.quantiles.clone()),
        };
        law.validate().map_err(Failure::input)?;
        Ok(law)
    }
}

/// Leaves of a profile's apps those of a pool, with the SLOs that are configured for them.
fn narrow(file: &mut ProfileFile, pool: &PoolConfig, configured: &[AppConfig]) {
    file.keep_apps(|name| pool.apps.iter().any(|app| app == name));
    for app in &mut file.apps {
        let found = configured.iter().find(|found| found.name == app.name);
        if let Some(slo_ms) = found.and_then(|found| found.slo_ms) {
            app.slo_us = (slo_ms * 1e3).round().max(1.0) as u64;
        }
    }
}

/// The bounds of queues and parking that a pool's workers are configured with, in turn.
fn bound(workers: &mut [WorkerSpec], pool: &PoolConfig, configured: &[WorkerConfig]) {
    let of_pool = |name: &String| configured.iter().find(|worker| worker.name == *name);
    let known: Vec<&WorkerConfig> = pool.workers.iter().filter_map(of_pool).collect();
    for (worker, of) in workers.iter_mut().zip(known.iter().cycle()) {
        worker.queue_max = of.queue_max;
        worker.parked_max = of.parked_max;
    }
}

/// So many workers: the given ones in turn, each with a name of its own.
pub(super) fn repeated(workers: &[WorkerSpec], count: usize) -> Vec<WorkerSpec> {
    let copies = workers.iter().cycle().take(count).enumerate();
    copies
        .map(|(i, worker)| WorkerSpec {
            name: match i / workers.len() {
                0 => worker.name.clone(),
                copy => format!("{}-{}", worker.name, copy + 1),
            },
            ..worker.clone()
        })
        .collect()
}

// === impl Service ===

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (law, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Vec<f64> = numbers
            .split(',')
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().map_err(|_| format!("`{word}` is no number")))
            .collect::<Result<_, _>>()?;
        match (law, numbers.as_slice()) {
            ("profiled", []) => Ok(Self::Law(ServiceTimes::Profiled)),
            ("percentiles", []) => Ok(Self::Percentiles),
            ("normal", &[mean, cv]) => Ok(Self::Law(ServiceTimes::Normal { mean, cv })),
            ("log-normal", &[mean, cv]) => Ok(Self::Law(ServiceTimes::LogNormal { mean, cv })),
            ("exponential", &[mean]) => Ok(Self::Law(ServiceTimes::Exponential { mean })),
            _ => Err(
                "must be profiled, percentiles, normal:MEAN,CV, log-normal:MEAN,CV or \
                 exponential:MEAN"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use switchyard_server::config::Config;

    #[test]
    fn laws_as_they_are_typed() {
        let law = |text: &str| text.parse::<Service>();
        assert_eq!(law("percentiles"), Ok(Service::Percentiles));
        let normal = ServiceTimes::Normal { mean: 0.8, cv: 0.1 };
        assert_eq!(law("normal:0.8,0.1"), Ok(Service::Law(normal)));
        for wrong in [
            "",
            "normal",
            "normal:1",
            "exponential:x",
            "profiled:1",
            "pareto:1,2",
        ] {
            assert!(law(wrong).is_err(), "{wrong}");
        }
    }

    fn worker(name: &str) -> WorkerSpec {
        WorkerSpec {
            name: name.to_owned(),
            kind: switchyard_core::ids::KindId(0),
            memory_bytes: 1,
            queue_max: 1,
            parked_max: 0,
        }
    }

    #[test]
    fn workers_have_the_bounds_of_the_configured_ones_in_turn() {
        let text = r#"
            [[app]]
            name = "a"
            [[worker]]
            name = "one"
            queue_max = 3
            [[worker]]
            name = "two"
            parked_max = 7
            [[pool]]
            name = "main"
            apps = ["a"]
            workers = ["two", "one"]
            policy = "fcfs"
        "#;
        let config = Config::parse(text, Path::new("yard.toml"), Path::new("")).unwrap();
        let mut workers = repeated(&[worker("a"), worker("b")], 3);
        bound(&mut workers, &config.pools[0], &config.workers);
        let bounds = workers.iter().map(|w| (w.queue_max, w.parked_max));
        assert_eq!(bounds.collect::<Vec<_>>(), [(8, 7), (3, 64), (8, 7)]);
    }

    #[test]
    fn copies_of_workers_have_names_of_their_own() {
        let many = repeated(&[worker("a"), worker("b")], 5);
        let names: Vec<_> = many.iter().map(|worker| worker.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "a-2", "b-2", "a-3"]);
    }
}
