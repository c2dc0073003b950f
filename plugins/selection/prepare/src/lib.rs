//! Simulates ModelSwitching's response latencies (RAMSIS section 7) for `selection`.
//!
//! Each model serves each load alone: idle workers of one kind take batches from one queue, with
//! the latencies of the profile. The same seed gives the same file.

#![forbid(unsafe_code)]

mod queue;

use std::ops::RangeInclusive;

use queue::SimulatedQueue;
use selection::responses::{FORMAT, Measured, Responses, VariantResponses};
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, VariantId, WorkerId};
use thiserror::Error;

/// The limit of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batching {
    /// As in the paper's artifact: per load, the largest batch of the model that Jellyfish+ selects
    /// without headroom, for every model.
    #[default]
    Published,
    /// Per model, the largest batch that takes at most half the SLO; if that does not sustain the
    /// load, the smallest that does. Stronger than the published ModelSwitching.
    Own,
}

/// The measurements to make.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseOptions {
    /// Numbers of workers.
    pub workers: Vec<u32>,
    /// Loads in requests per second, ascending.
    pub loads_rps: Vec<f64>,
    /// The limit of batches.
    pub batching: Batching,
    /// The percentile of the response latency, 0 to 1.
    pub percentile: f64,
    /// Simulated seconds of arrivals per load.
    pub seconds: f64,
    /// Seed of the arrivals, which are the same for all models.
    pub seed: u64,
}

/// A fault of the options or of the catalog.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PrepareError {
    /// An option is out of range.
    #[error("{option}: {reason}")]
    Option {
        /// Its name.
        option: &'static str,
        /// The allowed range.
        reason: &'static str,
    },
    /// The catalog has no workers, or workers of several kinds.
    #[error("workers: all must have the same kind; ModelSwitching is for one kind")]
    Kinds,
    /// No variant of an app is in the profile.
    #[error("app {0}: the profile has no variant of it on these workers; run `switchyard profile`")]
    NoVariant(String),
}

impl Default for ResponseOptions {
    fn default() -> Self {
        Self {
            workers: Vec::new(),
            loads_rps: Vec::new(),
            batching: Batching::default(),
            percentile: 0.99,
            seconds: 60.0,
            seed: 1,
        }
    }
}

/// Simulates the response latencies of all models of a catalog. Calls `progress` once per model and
/// load.
///
/// # Errors
/// See [`PrepareError`].
pub fn responses(
    catalog: &Catalog,
    options: &ResponseOptions,
    progress: &mut dyn FnMut(),
) -> Result<Responses, PrepareError> {
    options.check()?;
    let kind = match catalog.workers.split_first() {
        Some((first, rest)) if rest.iter().all(|worker| worker.kind == first.kind) => first.kind,
        _ => return Err(PrepareError::Kinds),
    };
    let mut measured = Vec::new();
    for (app, of) in (0..).map(AppId).zip(&catalog.apps) {
        let variants = (0u32..).map(VariantId).zip(&catalog.variants);
        let variants = variants.filter(|(_, variant)| variant.app == app);
        let models = variants.map(|(id, variant)| ProfiledModel {
            name: &variant.name,
            accuracy: variant
                .exit(variant.last_exit())
                .map_or(0.0, |exit| exit.accuracy),
            latencies_us: latencies_us(catalog, id),
        });
        let models: Vec<ProfiledModel<'_>> =
            models.filter(|m| !m.latencies_us.is_empty()).collect();
        if models.is_empty() {
            return Err(PrepareError::NoVariant(of.name.clone()));
        }
        for &workers in &options.workers {
            let task = AppMeasurement {
                slo_us: of.slo.0,
                workers,
                models: &models,
                options,
            };
            measured.push(Measured {
                app: of.name.clone(),
                kind: catalog.kinds[kind.index()].clone(),
                workers,
                slo_us: of.slo.0,
                percentile: options.percentile,
                loads_rps: options.loads_rps.clone(),
                variants: models
                    .iter()
                    .map(|model| task.measure(model, progress))
                    .collect(),
            });
        }
    }
    Ok(Responses {
        format: FORMAT,
        measured,
    })
}

/// Latencies to the last exit, by batch from 1, in microseconds.
fn latencies_us(catalog: &Catalog, id: VariantId) -> Vec<u64> {
    let variant = &catalog.variants[id.index()];
    let exit = variant.last_exit();
    let batches = 1..=variant.max_batch;
    let latencies = batches.map_while(|batch| catalog.latency(WorkerId(0), id, exit, batch));
    latencies.map(|latency| latency.0.max(1)).collect()
}

/// A variant with its latencies.
struct ProfiledModel<'a> {
    name: &'a str,
    accuracy: f64,
    /// By batch from 1; never empty.
    latencies_us: Vec<u64>,
}

/// The measurement of one app on a number of workers.
struct AppMeasurement<'a> {
    slo_us: u64,
    workers: u32,
    models: &'a [ProfiledModel<'a>],
    options: &'a ResponseOptions,
}

// === impl AppMeasurement ===

impl AppMeasurement<'_> {
    /// Measures one model under all loads.
    fn measure(&self, model: &ProfiledModel<'_>, progress: &mut dyn FnMut()) -> VariantResponses {
        let mut fits = true;
        let response = |&load_rps: &f64| {
            progress();
            let limits = self.limits(model, load_rps);
            let first = *limits.start();
            let found = limits.into_iter().filter(|_| fits).find_map(|limit| {
                let queue = SimulatedQueue {
                    latencies_us: model.latencies_us.get(..limit)?,
                    workers: self.workers,
                    load_rps,
                    seconds: self.options.seconds,
                    seed: self.options.seed,
                };
                let us = queue.response_us(self.options.percentile, self.slo_us)?;
                Some((limit as u32, Some(us)))
            });
            // Response latency grows with the load, unless higher loads allow larger batches.
            fits = found.is_some() || self.options.batching == Batching::Published;
            found.unwrap_or((first as u32, None))
        };
        let (batch_max, response_us) = self.options.loads_rps.iter().map(response).unzip();
        VariantResponses {
            variant: model.name.to_owned(),
            batch_max,
            response_us,
        }
    }

    /// The batch limits to try under a load, in order.
    fn limits(&self, model: &ProfiledModel<'_>, load_rps: f64) -> RangeInclusive<usize> {
        let most = model.latencies_us.len();
        match self.options.batching {
            Batching::Published => {
                let limit = self.published_limit(load_rps).min(most);
                limit..=limit
            }
            Batching::Own => {
                let half = model.largest_within(self.slo_us / 2).max(1);
                half..=model.largest_within(self.slo_us - 1).max(half)
            }
        }
    }

    /// The largest batch that takes at most half the SLO and sustains the load, of the most
    /// accurate model that has one; no limit if none has.
    fn published_limit(&self, load_rps: f64) -> usize {
        let of_worker = load_rps / f64::from(self.workers);
        let largest = |model: &ProfiledModel<'_>| {
            let within = model
                .latencies_us
                .get(..model.largest_within(self.slo_us / 2))?;
            let batches = (1..).zip(within);
            let able =
                batches.filter(|&(batch, &us)| f64::from(batch) * 1e6 / us as f64 >= of_worker);
            able.last().map(|(batch, _): (u32, _)| batch as usize)
        };
        let able = self
            .models
            .iter()
            .filter_map(|model| Some((model, largest(model)?)));
        let best = able.max_by(|(a, _), (b, _)| a.accuracy.total_cmp(&b.accuracy));
        best.map_or(usize::MAX, |(_, largest)| largest)
    }
}

// === impl ProfiledModel ===

impl ProfiledModel<'_> {
    /// The largest batch that takes at most `within_us`; 0 if even one request takes longer.
    fn largest_within(&self, within_us: u64) -> usize {
        let within = self.latencies_us.iter().rposition(|&us| us <= within_us);
        within.map_or(0, |at| at + 1)
    }
}

// === impl ResponseOptions ===

impl ResponseOptions {
    fn check(&self) -> Result<(), PrepareError> {
        let require = |holds: bool, option, reason| match holds {
            true => Ok(()),
            false => Err(PrepareError::Option { option, reason }),
        };
        let is_counted = !self.workers.is_empty() && self.workers.iter().all(|&count| count > 0);
        require(is_counted, "workers", "must be one or more numbers above 0")?;
        let is_load = |&load: &f64| load > 0.0 && load.is_finite();
        let are_loads = !self.loads_rps.is_empty() && self.loads_rps.iter().all(is_load);
        require(are_loads, "loads", "must be one or more numbers above 0")?;
        let is_sorted = self.loads_rps.is_sorted_by(|a, b| a < b);
        require(is_sorted, "loads", "must ascend")?;
        let is_share = self.percentile > 0.0 && self.percentile < 1.0;
        require(is_share, "percentile", "must be between 0 and 1")?;
        let is_time = self.seconds > 0.0 && self.seconds.is_finite();
        require(is_time, "seconds", "must be above 0")
    }
}

#[cfg(test)]
mod tests;
