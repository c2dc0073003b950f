//! A pool before its profile is known: configuration, apps of the zoo, workers and their kinds.

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Variant;
use switchyard_core::ids::{AppId, VariantId};
use switchyard_executor::KindToMeasure;
use switchyard_executor::device::DeviceName;
use switchyard_executor::manifest::{AppChoice, EvidenceChoice, Manifest, ManifestError};
use switchyard_models::card::APP_CARD;
use switchyard_models::onnx;
use switchyard_models::zoo::{Zoo, ZooApp};

use super::error::AssemblyError;
use super::hardware::{self, kind_of, kinds};
use super::served::{AppTensors, ServedVariant};
use crate::config::{Config, PoolConfig, WorkerConfig};
use crate::reloads::FollowedVariant;

/// A pool before it is started.
#[derive(Clone)]
pub struct PoolPlan {
    /// Its configuration.
    pub config: PoolConfig,
    /// Tensors of its apps, in the catalog's order.
    pub tensors: Vec<AppTensors>,
    pub(super) manifest: Manifest,
    /// The choice of evidence, by app.
    pub(super) evidence: Vec<EvidenceChoice>,
    pub(super) zoo: Vec<ZooApp>,
    pub(super) workers: Vec<WorkerConfig>,
    pub(super) kinds: Vec<KindToMeasure>,
}

// === impl PoolPlan ===

impl PoolPlan {
    /// Reads the zoo for every pool of a configuration.
    ///
    /// # Errors
    /// An app is not in its zoo, its cards are wrong, or the library that runs a variant is missing;
    /// a worker names a core that this process may not use.
    pub fn all(config: &Config) -> Result<Vec<Self>, AssemblyError> {
        hardware::check_cores(config)?;
        if let Some(library) = &config.server.onnxruntime {
            onnx::use_library(library);
        }
        let (mut plans, mut refused) = (Vec::new(), Vec::new());
        for pool in &config.pools {
            match Self::read(config, pool) {
                Ok(plan) => plans.push(plan),
                Err(error) => refused.push(error),
            }
        }
        AssemblyError::all(refused)?;
        for served in plans.iter().flat_map(Self::served) {
            served.can_run().map_err(|error| {
                let config = config.source.clone();
                AssemblyError::Manifest { config, error }
            })?;
        }
        Ok(plans)
    }

    /// Reads the zoo for the first pool of a configuration.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    ///
    /// # Panics
    /// There is no pool; a checked configuration has one.
    pub fn first(config: &Config) -> Result<Self, AssemblyError> {
        let pool = config.pools.first();
        Self::read(config, pool.expect("a checked configuration has a pool"))
    }

    fn read(config: &Config, pool: &PoolConfig) -> Result<Self, AssemblyError> {
        let apps = config
            .apps
            .iter()
            .filter(|app| pool.apps.contains(&app.name));
        let (mut zoo, mut missing) = (Vec::new(), Vec::new());
        let mut choices: Vec<AppChoice> = Vec::new();
        for app in apps {
            match ZooApp::open(&app.zoo.join(&app.name)) {
                Ok(found) => zoo.push(found),
                Err(error) => missing.push(AssemblyError::Zoo {
                    app: app.name.clone(),
                    error: Box::new(error),
                }),
            }
            choices.push(app.choice());
        }
        AssemblyError::all(missing)?;
        let chosen = Zoo {
            dir: zoo.first().map(|app| app.dir.clone()).unwrap_or_default(),
            apps: zoo,
        };
        let manifest = Manifest::choose(&chosen, &choices).map_err(|error| {
            let config = config.source.clone();
            AssemblyError::Manifest { config, error }
        })?;
        let tensors = (0..).map(AppId).zip(&chosen.apps).map(|(id, app)| {
            let variants = manifest.variants.iter().filter(|variant| variant.app == id);
            let folders = variants.clone().filter_map(|variant| {
                let card = app.variant_at(&variant.name);
                card.map(|(variant, _)| variant.dir.clone())
            });
            let known = variants.map(|variant| {
                let card = app.variant_at(&variant.name);
                card.is_some_and(|(variant, _)| !variant.card.quality_unknown)
            });
            AppTensors {
                task: app.card.task,
                inputs: app.card.inputs.clone(),
                outputs: app.card.outputs.clone(),
                folders: folders.collect(),
                known_quality: known.collect(),
                non_finite: app.card.non_finite,
            }
        });
        let tensors = tensors.collect();
        let workers = config.workers.iter();
        let workers: Vec<_> = workers
            .filter(|worker| pool.workers.contains(&worker.name))
            .cloned()
            .collect();
        check_non_finite(config, &chosen.apps, &workers)?;
        Ok(Self {
            config: pool.clone(),
            tensors,
            manifest,
            evidence: choices.iter().map(|choice| choice.evidence).collect(),
            zoo: chosen.apps,
            kinds: kinds(&workers),
            workers,
        })
    }

    /// Whether a pool of one plan serves as a pool of the other. Weights are followed on their own.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let cards = |zoo: &ZooApp| (zoo.dir.clone(), zoo.card.clone());
        self.config == other.config
            && self.workers == other.workers
            && self.evidence == other.evidence
            && self.manifest.apps == other.manifest.apps
            && self.manifest.variants == other.manifest.variants
            && self.manifest.source.entries() == other.manifest.source.entries()
            && self.tensors == other.tensors
            && self.zoo.iter().map(cards).eq(other.zoo.iter().map(cards))
    }

    /// Itself with the variants at some positions.
    pub(super) fn only(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        Self {
            manifest: self.manifest.only(is_kept),
            ..self.clone()
        }
    }

    /// Its apps in the zoo.
    pub fn apps(&self) -> &[ZooApp] {
        &self.zoo
    }

    /// The variants that were chosen, in the catalog's order.
    pub fn served(&self) -> impl Iterator<Item = ServedVariant<'_>> {
        self.manifest.variants.iter().filter_map(|chosen| {
            let app = self.zoo.get(chosen.app.index())?;
            let (variant, precision) = app.variant_at(&chosen.name)?;
            Some(ServedVariant {
                app,
                variant,
                precision,
                name: &chosen.name,
            })
        })
    }

    /// The expected share of each class in the requests of each app, in the catalog's order.
    pub fn class_mixes(&self) -> Vec<Vec<f64>> {
        let cards = self.zoo.iter().map(|app| &app.card);
        cards.map(|card| card.workload_mix.clone()).collect()
    }

    /// Bounds and seed of the pool's scheduler.
    pub fn scheduler(&self) -> SchedulerConfig {
        self.config.scheduler()
    }

    /// The subjects of a measurement, a line for each kind of worker and variant, with everything that
    /// the cells of a profile depend on.
    pub fn subjects(&self) -> Vec<String> {
        let Manifest { apps, variants, .. } = &self.manifest;
        let line = |kind: &KindToMeasure, variant: &Variant| {
            let app = apps.get(variant.app.index()).map_or("", |app| &app.name);
            let exits = variant.exits.iter().map(|exit| {
                let accuracy = exit.accuracy;
                format!("{} after {} ({accuracy})", exit.name, exit.after_stage)
            });
            format!(
                "{} {app}/{}: {} stages, {} bytes, batches to {}, exits {}",
                kind.name,
                variant.name,
                variant.stages,
                variant.memory_bytes,
                variant.max_batch,
                exits.collect::<Vec<_>>().join(", ")
            )
        };
        let kinds = self.kinds.iter();
        kinds
            .flat_map(|kind| variants.iter().map(move |variant| line(kind, variant)))
            .collect()
    }

    /// Kinds whose power the configuration declares, in watts.
    pub fn declared_power_w(&self) -> impl Iterator<Item = (String, f64)> {
        let workers = self.workers.iter();
        workers.filter_map(|worker| Some((kind_of(worker), worker.power_w?)))
    }

    /// The variants whose files are watched while serving.
    pub fn followed(&self) -> Vec<FollowedVariant> {
        let entries = (0..).map(VariantId).zip(self.manifest.source.entries());
        entries
            .map(|(id, entry)| FollowedVariant {
                id,
                name: entry.name.clone(),
                dir: entry.dir.clone(),
            })
            .collect()
    }
}

/// NaN stays NaN on CPUs; operations of GPUs turn it into a plausible number.
fn check_non_finite(
    config: &Config,
    apps: &[ZooApp],
    workers: &[WorkerConfig],
) -> Result<(), AssemblyError> {
    let app = apps.iter().find(|app| app.card.non_finite);
    let gpu = workers
        .iter()
        .find(|worker| worker.device != DeviceName::Cpu);
    let (Some(app), Some(worker)) = (app, gpu) else {
        return Ok(());
    };
    Err(AssemblyError::Manifest {
        config: config.source.clone(),
        error: ManifestError {
            field: format!("app {}, non_finite", app.card.name),
            reason: format!(
                "worker {} has a GPU, which may turn NaN into a number: take workers with \
                 device = \"cpu\", or leave it out of {}",
                worker.name,
                app.dir.join(APP_CARD).display()
            ),
        },
    })
}
