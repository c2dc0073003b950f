//! From a configuration to the parts of its pools: zoo, profile, catalog, executors.

mod hardware;
mod profile;

use std::path::PathBuf;
use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, Variant, WorkerSpec};
use switchyard_core::ids::{KindId, VariantId};
use switchyard_executor::manifest::{AppChoice, EvidenceChoice, Manifest, ManifestError};
use switchyard_executor::{CandleExecutor, KindToMeasure, ModelSource, Weights};
use switchyard_models::card::{Task, TensorCard};
use switchyard_models::zoo::{Zoo, ZooApp, ZooVariant};
use switchyard_models::{Architecture, ModelError, Precision, onnx};
use switchyard_policy::recording::Header;
use switchyard_profile::{MeasureError, ProfileError, ProfileFileError};
use thiserror::Error;

pub use hardware::HardwareError;
pub use profile::{Measured, measure};

use self::hardware::{kind_of, kinds};
use crate::config::{Config, PoolConfig, WorkerConfig};
use crate::driver::{PoolExecutor, PoolParts, PoolWeights};
use crate::evidence::{Counted, EvidenceModel, EvidenceModels};
use crate::recorder::RecordOptions;
use crate::reloads::FollowedVariant;

/// Why a configuration cannot be served.
#[derive(Debug, Error)]
pub enum AssemblyError {
    /// The zoo is at fault.
    #[error("app {app}: {error}; `switchyard train {app}` makes one")]
    Zoo {
        /// The app.
        app: String,
        /// What is wrong with its folder.
        error: Box<ModelError>,
    },
    /// The zoo has no such variant, or a card asks for what cannot be served.
    #[error("{config}: {error}")]
    Manifest {
        /// The configuration.
        config: PathBuf,
        /// What is wrong.
        error: ManifestError,
    },
    /// A worker is to run on what this machine has not.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// A worker is to keep what it cannot.
    #[error("worker {worker}: pin: {reason}")]
    Pin {
        /// The worker.
        worker: String,
        /// What is wrong.
        reason: String,
    },
    /// The profile asked for cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The measured profile cannot be kept.
    #[error(transparent)]
    Keep(#[from] ProfileFileError),
    /// Nothing could be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

/// One pool, before it is started.
pub struct PoolPlan {
    /// Its configuration.
    pub config: PoolConfig,
    /// Tensors of its apps, in the catalog's order.
    pub tensors: Vec<AppTensors>,
    manifest: Manifest,
    /// What is counted as evidence, by app.
    evidence: Vec<EvidenceChoice>,
    zoo: Vec<ZooApp>,
    workers: Vec<WorkerConfig>,
    kinds: Vec<KindToMeasure>,
}

/// A variant as it is served.
#[derive(Clone, Copy, Debug)]
pub struct ServedVariant<'a> {
    /// Its app.
    pub app: &'a ZooApp,
    /// Its card and files.
    pub variant: &'a ZooVariant,
    /// What its weights are kept in.
    pub precision: Precision,
    /// What it is called, such as `cnn@int8`.
    pub name: &'a str,
}

/// What an app takes and gives on the wire.
#[derive(Clone, Debug)]
pub struct AppTensors {
    /// What its answers are.
    pub task: Task,
    /// Inputs of one request.
    pub inputs: Vec<TensorCard>,
    /// Outputs of one answer.
    pub outputs: Vec<TensorCard>,
}

// === impl ServedVariant ===

impl ServedVariant<'_> {
    /// Whether what runs it is here: a server that cannot run a variant says so at its start and
    /// not to the first client.
    fn can_run(&self) -> Result<(), ManifestError> {
        if !matches!(self.variant.card.architecture, Architecture::Onnx(_)) {
            return Ok(());
        }
        onnx::ready().map_err(|reason| ManifestError {
            field: format!("app {}, variant {}", self.app.card.name, self.name),
            reason,
        })
    }
}

// === impl PoolPlan ===

impl PoolPlan {
    /// Reads the zoo for every pool of a configuration.
    ///
    /// # Errors
    /// An app is not in its zoo, or its cards are wrong, or what runs a variant is missing;
    /// a worker is to run on a core that this process may not use.
    pub fn all(config: &Config) -> Result<Vec<Self>, AssemblyError> {
        hardware::check_cores(config)?;
        if let Some(library) = &config.server.onnxruntime {
            onnx::use_library(library);
        }
        let pools = config.pools.iter();
        let plans: Vec<Self> = pools
            .map(|pool| Self::read(config, pool))
            .collect::<Result<_, _>>()?;
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
        let mut zoo = Vec::new();
        let mut choices: Vec<AppChoice> = Vec::new();
        for app in apps {
            let found =
                ZooApp::open(&app.zoo.join(&app.name)).map_err(|error| AssemblyError::Zoo {
                    app: app.name.clone(),
                    error: Box::new(error),
                })?;
            zoo.push(found);
            choices.push(app.choice());
        }
        let tensors = zoo.iter().map(|app| AppTensors {
            task: app.card.task,
            inputs: app.card.inputs.clone(),
            outputs: app.card.outputs.clone(),
        });
        let tensors = tensors.collect();
        let chosen = Zoo {
            dir: zoo.first().map(|app| app.dir.clone()).unwrap_or_default(),
            apps: zoo,
        };
        let manifest = Manifest::choose(&chosen, &choices).map_err(|error| {
            let config = config.source.clone();
            AssemblyError::Manifest { config, error }
        })?;
        let workers = config.workers.iter();
        let workers: Vec<_> = workers
            .filter(|worker| pool.workers.contains(&worker.name))
            .cloned()
            .collect();
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

    /// Its apps, as the zoo has them.
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

    /// Joins everything into what a driver starts from.
    ///
    /// # Errors
    /// The evidence model of an app cannot be read.
    pub fn parts(
        &self,
        measured: &Measured,
        inbox_max: usize,
        drift_ratio: f64,
    ) -> Result<PoolParts, AssemblyError> {
        let catalog = Arc::new(self.catalog(measured)?);
        let source: Arc<dyn ModelSource> = Arc::clone(&self.manifest.source) as _;
        let weights = Weights::new(source);
        let pinned = self.pinned()?;
        let devices = hardware::open(&self.workers)?;
        let workers = self.workers.iter().zip(&catalog.workers).zip(&pinned);
        let executors = workers
            .zip(&devices)
            .map(|(((worker, spec), pinned), device)| {
                let budget = worker.memory_bytes();
                let loads = (0..catalog.variants.len() as u32).map(VariantId);
                let loads = loads.map(|variant| catalog.profile.load_time(spec.kind, variant));
                let executor = CandleExecutor::new(Arc::clone(&weights), device.clone(), budget)
                    .with_loads(loads.collect());
                let pinned = pinned.iter().copied();
                let executor = pinned.fold(executor, CandleExecutor::with_pinned);
                PoolExecutor {
                    executor: Box::new(executor),
                    threads: worker.threads,
                    cores: worker.cores.clone(),
                }
            });
        Ok(PoolParts {
            name: self.config.name.clone(),
            scheduler: self.scheduler(),
            executors: executors.collect(),
            weights: PoolWeights::new(weights, devices),
            pinned,
            medians: measured.medians(self)?,
            drift_ratio,
            evidence: self.evidence()?,
            inbox_max,
            record: self.record(&catalog),
            catalog,
        })
    }

    /// Where its windows are recorded, and what they begin with.
    fn record(&self, catalog: &Catalog) -> Option<RecordOptions> {
        let record = self.config.record.as_ref()?;
        Some(RecordOptions {
            file: record.file.clone(),
            bytes_max: record.max_mb << 20,
            header: self.header(catalog),
        })
    }

    fn header(&self, catalog: &Catalog) -> Header {
        Header::new(&self.config.name, catalog.clone())
            .with_seed(self.config.seed)
            .with_limits(&self.config.limits())
    }

    /// Shares of the classes that each app's clients are said to send, in the catalog's order.
    pub fn class_mixes(&self) -> Vec<Vec<f64>> {
        let cards = self.zoo.iter().map(|app| &app.card);
        cards.map(|card| card.workload_mix.clone()).collect()
    }

    /// Bounds and seed of the pool's scheduler.
    pub fn scheduler(&self) -> SchedulerConfig {
        self.config.scheduler()
    }

    /// What is measured, a line each: worker kinds, variants, and what cells depend on.
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

    /// What a policy chooses from.
    ///
    /// # Errors
    /// The profile lacks something that is served.
    pub fn catalog(&self, measured: &Measured) -> Result<Catalog, AssemblyError> {
        let kinds: Vec<String> = self.kinds.iter().map(|kind| kind.name.clone()).collect();
        let workers = self.workers.iter().map(|worker| {
            let name = kind_of(worker);
            let kind = kinds
                .iter()
                .position(|kind| *kind == name)
                .unwrap_or_default();
            WorkerSpec {
                name: worker.name.clone(),
                kind: KindId(kind as u32),
                memory_bytes: worker.memory_bytes(),
                queue_max: worker.queue_max,
                parked_max: worker.parked_max,
            }
        });
        let apps = self.manifest.apps.clone();
        let mut variants = self.manifest.variants.clone();
        measured.add_confusions(&apps, &mut variants)?;
        Ok(Catalog {
            generation: 1,
            apps,
            variants,
            workers: workers.collect(),
            profile: measured.table(self)?,
            kinds,
        })
    }

    /// Kinds whose power the configuration declares, in watts.
    pub fn declared_power_w(&self) -> impl Iterator<Item = (String, f64)> {
        let workers = self.workers.iter();
        workers.filter_map(|worker| Some((kind_of(worker), worker.power_w?)))
    }

    /// The variants whose files are followed while serving.
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

    /// The variants that each worker never evicts.
    fn pinned(&self) -> Result<Vec<Vec<VariantId>>, AssemblyError> {
        let entries = self.manifest.source.entries();
        let mut all = Vec::new();
        for worker in &self.workers {
            let refuse = |reason: String| AssemblyError::Pin {
                worker: worker.name.clone(),
                reason,
            };
            let mut pinned = Vec::new();
            let mut bytes = 0;
            for name in &worker.pin {
                let at = entries.iter().position(|entry| entry.name == *name);
                let Some(at) = at else {
                    let known: Vec<_> = entries.iter().map(|e| e.name.as_str()).collect();
                    let known = known.join(", ");
                    let reason = format!("`{name}` is not served in its pool, which has: {known}");
                    return Err(refuse(reason));
                };
                pinned.push(VariantId(at as u32));
                bytes += entries[at].memory_bytes;
            }
            let budget = worker.memory_bytes();
            if bytes > budget {
                let reason = format!("takes {bytes} bytes in all, memory_mb is {budget} bytes");
                return Err(refuse(reason));
            }
            all.push(pinned);
        }
        Ok(all)
    }

    fn evidence(&self) -> Result<EvidenceModels, AssemblyError> {
        let choices = self.manifest.apps.iter().zip(&self.evidence);
        self.zoo
            .iter()
            .zip(choices)
            .map(|(app, (served, choice))| {
                let model = app.sneakpeek().map_err(|error| AssemblyError::Zoo {
                    app: app.card.name.clone(),
                    error: Box::new(error),
                })?;
                let neighbours = served
                    .sneakpeek
                    .as_ref()
                    .map_or(0, |model| model.neighbours);
                let counted = match choice {
                    EvidenceChoice::Vote => Counted::Vote,
                    _ => Counted::Neighbours(neighbours as usize),
                };
                Ok(model.map(|model| EvidenceModel { model, counted }))
            })
            .collect()
    }
}
