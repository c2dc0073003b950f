//! The inputs of a simulation, from Python.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use switchyard_core::time::Micros;
use switchyard_simulate::bundle::Bundle;
use switchyard_simulate::named::{Named, settings_of};
use switchyard_simulate::{SimulationRequest, words};

use crate::compiled::CompiledPolicies;
use crate::error::{refused, wrong};
use crate::policy::PythonPolicy;

/// Most runs per policy, as of the command.
const SEEDS_MAX: usize = 1_000;

/// Most workers, as of the command.
const WORKERS_MAX: u32 = 10_000;

/// A dictionary with all of these keys.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    /// A file of the package, next to or above which its policies and models are.
    package: PathBuf,
    /// The call, for results.
    pub(crate) command: String,
    profile: PathBuf,
    /// A spec, the name of a JSON file, or JSON.
    workload: String,
    workload_is_json: bool,
    policies: Vec<PolicyOption>,
    /// In the order of their positions among all policies.
    pub(crate) python_policies: Vec<PythonPolicy>,
    seeds: Vec<u64>,
    seconds: Option<f64>,
    config: Option<PathBuf>,
    zoo: Option<PathBuf>,
    policies_dir: Option<PathBuf>,
    workers: Option<u32>,
    sweep: Option<String>,
    service: String,
    percentile: String,
    late: Option<String>,
    latencies: Option<String>,
    window_budget_ms: Option<u64>,
    link_us: u64,
    wire_us: u64,
    cold: bool,
    /// Tables that the first run keeps: requests, batches, windows.
    pub(crate) keep: Vec<String>,
    /// Components that need not be compiled again.
    pub(crate) compiled: Option<Py<CompiledPolicies>>,
    /// Threads that run; 0: one per core.
    pub(crate) threads: usize,
    /// Called with the runs that are done and all runs.
    pub(crate) progress: Option<Py<PyAny>>,
}

/// A policy: as the command takes it, or in parts.
#[derive(FromPyObject)]
enum PolicyOption {
    Text(String),
    /// Name, policy, settings as a table of TOML.
    Parts(String, String, String),
}

// === impl Options ===

impl Options {
    /// The checked request.
    ///
    /// # Errors
    /// Names the field, its value and the allowed range.
    pub(crate) fn request(&self) -> PyResult<SimulationRequest> {
        if self.policies.is_empty() && self.python_policies.is_empty() {
            return Err(wrong("policies", "empty, must name at least one policy"));
        }
        self.request_without_policies()
    }

    /// The seed of a run that is decided from outside.
    pub(crate) fn first_seed(&self) -> u64 {
        self.seeds.first().copied().unwrap_or_default()
    }

    /// As [`request`](Self::request), for a run that is decided from outside.
    ///
    /// # Errors
    /// As of [`request`](Self::request).
    pub(crate) fn request_without_policies(&self) -> PyResult<SimulationRequest> {
        let seeds = self.seeds.len();
        if !(1..=SEEDS_MAX).contains(&seeds) {
            let reason = format!("{seeds} seeds, must be 1 to {SEEDS_MAX}");
            return Err(wrong("seeds", reason));
        }
        if let Some(seconds) = self.seconds.filter(|s| !(*s > 0.0 && s.is_finite())) {
            let reason = format!("{seconds}, must be a positive number");
            return Err(wrong("seconds", reason));
        }
        if let Some(workers) = self.workers.filter(|w| !(1..=WORKERS_MAX).contains(w)) {
            let reason = format!("{workers}, must be 1 to {WORKERS_MAX}");
            return Err(wrong("workers", reason));
        }
        let workload = match self.workload_is_json {
            true => words::workload_json("workload", &self.workload),
            false => words::workload(&self.workload),
        };
        let name = match self.workload_is_json {
            // As a file: the deadline may depend on the stream.
            true => "workload.json".to_owned(),
            false => self.workload.clone(),
        };
        let request =
            SimulationRequest::new(self.profile.clone(), workload.map_err(refused)?, name);
        let policies = self.policies.iter().map(PolicyOption::named);
        Ok(SimulationRequest {
            policies: policies.collect::<PyResult<_>>()?,
            seeds: self.seeds.clone(),
            seconds: self.seconds,
            config: self.config.clone(),
            bundle: Bundle::above(&self.package),
            zoo: self.zoo.clone(),
            folder: self.policies_dir.clone(),
            workers: self.workers,
            sweep: parsed("sweep", self.sweep.as_ref(), str::parse)?,
            service: named("service", &self.service, str::parse)?,
            percentile: named("percentile", &self.percentile, words::percentile)?,
            late: parsed("late", self.late.as_ref(), words::late)?,
            latencies: parsed("latencies", self.latencies.as_ref(), words::latencies)?,
            window_budget: self.window_budget_ms.map(Duration::from_millis),
            link: Micros(self.link_us),
            wire: Micros(self.wire_us),
            cold: self.cold,
            ..request
        })
    }
}

// === impl PolicyOption ===

impl PolicyOption {
    fn named(&self) -> PyResult<Named> {
        match self {
            Self::Text(text) => named("policies", text, str::parse),
            Self::Parts(name, policy, settings) => {
                let settings = settings_of(settings);
                let made = settings
                    .and_then(|settings| Named::try_new(name.clone(), policy.clone(), settings));
                made.map_err(|error| wrong(&format!("policies: {name}"), error))
            }
        }
    }
}

/// A word that is parsed; its error names field and value.
fn named<T>(field: &str, text: &str, parse: impl Fn(&str) -> Result<T, String>) -> PyResult<T> {
    parse(text).map_err(|error| wrong(field, format!("`{text}`, {error}")))
}

fn parsed<T>(
    field: &str,
    text: Option<&String>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> PyResult<Option<T>> {
    text.map(|text| named(field, text, parse)).transpose()
}
