//! The offline part of `selection`: ModelSwitching's response latencies (RAMSIS section 7), by
//! simulation.
//!
//! Each model serves each load alone: workers of one kind take batches from one queue as soon as
//! they are idle, a batch takes what the profile says. The same seed gives the same file.

mod queue;

use queue::Run;
use selection::responses::{FORMAT, Measured, Responses, VariantResponses};
use switchyard_core::catalog::{App, Catalog};
use switchyard_core::ids::{AppId, VariantId, WorkerId};
use thiserror::Error;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Numbers of workers.
    pub workers: Vec<u32>,
    /// Loads in requests per second, ascending.
    pub loads_rps: Vec<f64>,
    /// Which percentile of the response latency, 0 to 1.
    pub percentile: f64,
    /// How long requests arrive under each load, in virtual seconds.
    pub seconds: f64,
    /// Seed of the arrivals; all models see the same ones.
    pub seed: u64,
}

/// Why nothing can be measured.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PrepareError {
    /// An option makes no sense.
    #[error("{option}: {reason}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The catalog has no workers, or of several kinds.
    #[error("the workers must be of one kind")]
    Kinds,
    /// No variant of an app was profiled.
    #[error("app {0}: no variant of it was profiled on these workers")]
    NoVariant(String),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: Vec::new(),
            loads_rps: Vec::new(),
            percentile: 0.99,
            seconds: 60.0,
            seed: 1,
        }
    }
}

/// The response latencies of all models of a catalog. `progress` is told of each model under each
/// load.
///
/// # Errors
/// An option or the catalog does not do.
pub fn responses(
    catalog: &Catalog,
    options: &Options,
    progress: &mut dyn FnMut(),
) -> Result<Responses, PrepareError> {
    options.check()?;
    let kind = match catalog.workers.split_first() {
        Some((first, rest)) if rest.iter().all(|worker| worker.kind == first.kind) => first.kind,
        _ => return Err(PrepareError::Kinds),
    };
    let mut measured = Vec::new();
    for (app, of) in (0..).map(AppId).zip(&catalog.apps) {
        for &workers in &options.workers {
            let variants = (0u32..).map(VariantId).zip(&catalog.variants);
            let variants = variants.filter(|(_, variant)| variant.app == app);
            let variants: Vec<VariantResponses> = variants
                .filter_map(|(id, variant)| {
                    let latencies = latencies_us(catalog, id);
                    let name = &variant.name;
                    measure(name, &latencies, of, workers, options, progress)
                })
                .collect();
            if variants.is_empty() {
                return Err(PrepareError::NoVariant(of.name.clone()));
            }
            measured.push(Measured {
                app: of.name.clone(),
                kind: catalog.kinds[kind.index()].clone(),
                workers,
                slo_us: of.slo.0,
                percentile: options.percentile,
                loads_rps: options.loads_rps.clone(),
                variants,
            });
        }
    }
    Ok(Responses {
        format: FORMAT,
        measured,
    })
}

/// Whole runs to the last exit, of batches of 1, 2, and so on.
fn latencies_us(catalog: &Catalog, id: VariantId) -> Vec<u64> {
    let variant = &catalog.variants[id.index()];
    let exit = variant.last_exit();
    let batches = 1..=variant.max_batch;
    let latencies = batches.map_while(|batch| catalog.latency(WorkerId(0), id, exit, batch));
    latencies.map(|latency| latency.0.max(1)).collect()
}

/// One model under all loads; none where it was not profiled.
fn measure(
    name: &str,
    latencies_us: &[u64],
    app: &App,
    workers: u32,
    options: &Options,
    progress: &mut dyn FnMut(),
) -> Option<VariantResponses> {
    latencies_us.first()?;
    // Adaptive batching: what takes at most half the SLO, as Jellyfish+ has it, or one request;
    // where that does not keep up, the smallest batches that do.
    let half = latencies_us.iter().rposition(|&us| us <= app.slo.0 / 2);
    let half = half.map_or(1, |at| at + 1);
    let below = latencies_us.iter().take_while(|&&us| us < app.slo.0);
    let largest = below.count().max(half);
    let mut fits = true;
    let response = |&load_rps: &f64| {
        progress();
        let limits = (half..=largest).filter(|_| fits);
        let found = limits.into_iter().find_map(|limit| {
            let run = Run {
                latencies_us: latencies_us.get(..limit)?,
                workers,
                load_rps,
                seconds: options.seconds,
                seed: options.seed,
            };
            let us = run.response_us(options.percentile, app.slo.0)?;
            Some((limit as u32, Some(us)))
        });
        // Under a higher load it takes longer still.
        fits = found.is_some();
        found.unwrap_or((half as u32, None))
    };
    let (batch_max, response_us) = options.loads_rps.iter().map(response).unzip();
    Some(VariantResponses {
        variant: name.to_owned(),
        batch_max,
        response_us,
    })
}

// === impl Options ===

impl Options {
    fn check(&self) -> Result<(), PrepareError> {
        let require = |holds: bool, option, reason| match holds {
            true => Ok(()),
            false => Err(PrepareError::Option { option, reason }),
        };
        let is_counted = !self.workers.is_empty() && self.workers.iter().all(|&count| count > 0);
        require(is_counted, "workers", "must be numbers above 0")?;
        let is_load = |&load: &f64| load > 0.0 && load.is_finite();
        let are_loads = !self.loads_rps.is_empty() && self.loads_rps.iter().all(is_load);
        require(are_loads, "loads", "must be numbers above 0")?;
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
