//! The test bed of a simulation: the catalog of a configured pool with the latencies of a profile,
//! or the catalog that an imported profile brings.

use std::path::PathBuf;
use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Catalog;
use switchyard_policy::Limits;
use switchyard_profile::{Percentile, ProfileFile};
use switchyard_server::assembly::{self, Measured, PoolPlan};
use switchyard_server::config::{Config, LatencySource};
use switchyard_sim::{Quantile, ServiceTimes};

use crate::error::InputError;
use crate::request::SimulationRequest;
use crate::service::Service;
use crate::shipped::read_config_with;
use crate::workers::{bound, repeated};

/// One pool, ready to be simulated.
pub struct TestBed {
    /// Name of the pool.
    pub pool: String,
    /// Apps, variants, workers, latencies.
    pub catalog: Arc<Catalog>,
    /// Bounds of the scheduler.
    pub scheduler: SchedulerConfig,
    /// Shares of the classes, by app.
    pub class_mixes: Vec<Vec<f64>>,
    /// Limits of the policies.
    pub limits: Limits,
    /// The folder of policies.
    pub policies: PathBuf,
    /// The folder of bundled policies.
    pub bundled: Option<PathBuf>,
    /// The profile at each of its percentiles.
    quantiles: Vec<Quantile>,
}

// === impl TestBed ===

impl TestBed {
    pub(crate) fn read(args: &SimulationRequest) -> Result<Self, InputError> {
        let config = read_config_with(args.config.as_deref(), args.bundle.clone())?;
        Self::of(config, args)
    }

    /// That of this configuration.
    pub(crate) fn of(mut config: Config, args: &SimulationRequest) -> Result<Self, InputError> {
        if let Some(zoo) = &args.zoo {
            for app in &mut config.apps {
                app.zoo.clone_from(zoo);
            }
        }
        if let Some(folder) = &args.folder {
            config.policies.dir.clone_from(folder);
        }
        let mut file = ProfileFile::load(&args.profile).map_err(InputError::new)?;
        let named = |error: &dyn std::fmt::Display| {
            InputError::new(format!("{}: {error}", args.profile.display()))
        };
        let pool = config
            .pools
            .first()
            .ok_or_else(|| InputError::new("the configuration has no pool"))?;
        // An imported profile brings its own apps, which no zoo has. The apps that a configuration
        // names are searched in the profile first.
        let brings_apps = match &args.config {
            None => file.has_apps(),
            Some(_) => assembly::brings_apps(&file, pool),
        };
        let plan = if brings_apps {
            if args.config.is_some() {
                assembly::narrow(&mut file, pool, &config.apps);
            }
            None
        } else {
            Some(PoolPlan::first(&config).map_err(InputError::new)?)
        };
        let catalog_at = |percentile| match &plan {
            Some(plan) => {
                let measured = Measured::elsewhere(file.clone(), percentile, &args.profile);
                plan.catalog(&measured).map_err(|error| named(&error))
            }
            None => file.to_catalog(percentile).map_err(|error| named(&error)),
        };
        let mut catalog = catalog_at(args.percentile.into())?;
        // A configuration cannot name the worker kinds of a profile that brings its apps.
        let configured = args.config.as_ref().filter(|_| brings_apps);
        let configured = configured.map(|_| config.workers_of(pool).len());
        if let Some(workers) = args.workers.map(|count| count as usize).or(configured) {
            catalog.workers = repeated(&catalog.workers, workers);
        }
        if configured.is_some() {
            bound(&mut catalog.workers, pool, &config.workers);
        }
        if let Some(late) = args.late {
            catalog.apps.iter_mut().for_each(|app| app.late = late);
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
                // The fewest with which windows reuse their buffers. A simulation reads none.
                history: 1,
                follows_latencies: args.latencies.unwrap_or(pool.latencies)
                    == LatencySource::Observed,
                ..pool.scheduler()
            },
            class_mixes: plan.as_ref().map(PoolPlan::class_mixes).unwrap_or_default(),
            limits: match args.window_budget {
                Some(window_budget) => Limits {
                    window_budget,
                    ..pool.limits()
                },
                None => pool.limits(),
            },
            policies: config.policies.dir.clone(),
            bundled: config.bundled_policies.clone(),
            quantiles: quantiles
                .map(quantile)
                .into_iter()
                .collect::<Result<_, InputError>>()?,
        })
    }

    /// The law of service times with the percentiles of this profile.
    pub(crate) fn service(&self, service: &Service) -> Result<ServiceTimes, InputError> {
        let law = match service {
            Service::Law(law) => law.clone(),
            Service::Percentiles => ServiceTimes::Percentiles(self.quantiles.clone()),
        };
        law.validate().map_err(InputError::new)?;
        Ok(law)
    }
}
