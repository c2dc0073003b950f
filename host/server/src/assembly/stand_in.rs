//! Workers that compute nothing and take the time of a profile, and the apps that such a profile brings.

use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_core::ids::AppId;
use switchyard_executor::device::DeviceName;
use switchyard_executor::manifest::{Manifest, ManifestError};
use switchyard_executor::synthetic::WaitMode;
use switchyard_executor::zoo::ZooSource;
use switchyard_executor::{Executor, KindToMeasure, SyntheticExecutor};
use switchyard_models::card::{Datatype, Task, TensorCard};
use switchyard_models::zoo::ZooApp;
use switchyard_profile::{Percentile, ProfileError, ProfileFile};

use super::error::AssemblyError;
use super::served::AppTensors;
use crate::config::{AppConfig, Config, PoolConfig};
use crate::driver::BuildExecutor;

/// The input of an app that no zoo has: a number, which no worker reads.
const INPUT: &str = "x";

/// The apps that a profile brings, and its kinds of workers.
pub(super) struct BroughtApps {
    pub(super) manifest: Manifest,
    pub(super) tensors: Vec<AppTensors>,
    pub(super) kinds: Vec<KindToMeasure>,
}

/// Whether a profile brings every app of a pool, so that none is taken from a zoo.
pub fn brings_apps(file: &ProfileFile, pool: &PoolConfig) -> bool {
    pool.apps.iter().all(|name| file.app(name).is_some())
}

/// Keeps the apps of a pool in a profile, with their configured SLOs.
pub fn narrow(file: &mut ProfileFile, pool: &PoolConfig, configured: &[AppConfig]) {
    file.keep_apps(|name| pool.apps.iter().any(|app| app == name));
    for app in &mut file.apps {
        let found = configured.iter().find(|found| found.name == app.name);
        if let Some(slo_ms) = found.and_then(|found| found.slo_ms) {
            app.slo_us = (slo_ms * 1e3).round().max(1.0) as u64;
        }
    }
}

/// The apps of a pool that the profile brings; none if they are the zoo's.
///
/// # Errors
/// The profile cannot be read, or lacks a latency or an accuracy of an app.
pub(super) fn brought(
    config: &Config,
    pool: &PoolConfig,
) -> Result<Option<BroughtApps>, AssemblyError> {
    let Some(path) = config
        .profile
        .file
        .as_ref()
        .filter(|_| config.profile.stand_in)
    else {
        return Ok(None);
    };
    let mut file = ProfileFile::load(path).map_err(ProfileError::from)?;
    if !brings_apps(&file, pool) {
        return Ok(None);
    }
    narrow(&mut file, pool, &config.apps);
    BroughtApps::of(config, file).map(Some)
}

/// Checks that each app classifies: a worker that computes nothing makes no other answer.
pub(super) fn check_tasks(config: &Config, apps: &[ZooApp]) -> Result<(), AssemblyError> {
    let Some(app) = apps.iter().find(|app| app.card.task != Task::Classify) else {
        return Ok(());
    };
    Err(AssemblyError::Manifest {
        origin: config.written.origin(&config.app_field(&app.card.name)),
        error: ManifestError {
            field: format!("app {}, task", app.card.name),
            reason: format!(
                "\"{}\", workers that only take time (profile.stand_in) answer \"classify\"",
                app.card.task.name()
            ),
        },
    })
}

/// Builds an executor that takes the time of the catalog's profile.
pub(super) fn build(catalog: &std::sync::Arc<Catalog>, worker: &WorkerSpec) -> BuildExecutor {
    let (catalog, kind, budget) = (catalog.clone(), worker.kind, worker.memory_bytes);
    Box::new(move || {
        // On the worker's thread, which sleeps. Refused: sleeps are up to 50 us longer.
        let _ = switchyard_threads::exact_timers();
        let executor = SyntheticExecutor::new(catalog.clone(), kind, WaitMode::Sleep, budget);
        Ok(Box::new(executor) as Box<dyn Executor>)
    })
}

// === impl BroughtApps ===

impl BroughtApps {
    /// The apps and kinds of a profile.
    ///
    /// # Errors
    /// The profile lacks a latency or an accuracy of an app.
    pub(super) fn of(config: &Config, file: ProfileFile) -> Result<Self, AssemblyError> {
        let Catalog {
            mut apps,
            variants,
            kinds,
            ..
        } = file.to_catalog(Percentile::from(config.profile.percentile))?;
        for app in &mut apps {
            let found = config.apps.iter().find(|found| found.name == app.name);
            app.late = found.map_or(app.late, |found| found.late);
        }
        let tensors = (0..).map(AppId).zip(&apps).map(|(id, app)| {
            let variants = variants.iter().filter(|variant| variant.app == id).count();
            AppTensors {
                task: Task::Classify,
                inputs: vec![TensorCard::fixed(INPUT, Datatype::Fp32, &[1])],
                outputs: vec![
                    TensorCard::fixed("probabilities", Datatype::Fp32, &[app.classes.len()]),
                    TensorCard::fixed("label", Datatype::Int64, &[1]),
                ],
                folders: Vec::new(),
                known_quality: vec![true; variants],
                non_finite: false,
            }
        });
        let kinds = kinds.into_iter().map(|name| KindToMeasure {
            name,
            device: DeviceName::Cpu,
            threads: 1,
            build: None,
        });
        Ok(Self {
            tensors: tensors.collect(),
            kinds: kinds.collect(),
            manifest: Manifest {
                apps,
                variants,
                source: ZooSource::new(Vec::new()),
            },
        })
    }
}
