//! A pool before its profile is known: configuration, apps of the zoo, workers and their kinds.

use std::path::Path;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::Variant;
use switchyard_core::ids::{AppId, VariantId};
use switchyard_executor::KindToMeasure;
use switchyard_executor::device::DeviceName;
use switchyard_executor::manifest::{AppChoice, EvidenceChoice, Manifest, ManifestError};
use switchyard_models::card::APP_CARD;
use switchyard_models::zoo::{Zoo, ZooApp};
use switchyard_models::{Precision, onnx};
use switchyard_remote::{Etcd, RemoteOptions};

use super::error::AssemblyError;
use super::hardware::{self, kind_of, kinds};
use super::remote::{self, Finder};
use super::served::{AppTensors, ServedVariant};
use super::stand_in::{self, BroughtApps};
use crate::config::{AppConfig, Config, PoolConfig, WorkerConfig, closest};
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
    pub(super) finder: Finder,
    /// Its workers compute nothing and take the profile's time.
    pub(super) stand_in: bool,
    /// The profile brings its apps and kinds of workers.
    pub(super) is_brought: bool,
}

// === impl PoolPlan ===

impl PoolPlan {
    /// Reads the zoo for every pool of a configuration.
    ///
    /// # Errors
    /// An app is not in its zoo, its cards are wrong, or the library that runs a variant is missing;
    /// a worker names a core that this process may not use.
    pub fn all(config: &Config) -> Result<Vec<Self>, AssemblyError> {
        AssemblyError::all(Self::misfits(config))?;
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
            let origin = || {
                config
                    .written
                    .origin(&config.app_field(&served.app.card.name))
            };
            served.can_run().map_err(|error| AssemblyError::Manifest {
                origin: origin(),
                error,
            })?;
        }
        Ok(plans)
    }

    /// The cores that workers name and this process may not use.
    pub(crate) fn misfits(config: &Config) -> Vec<AssemblyError> {
        let misfits = hardware::check_cores(config).into_iter();
        misfits.map(AssemblyError::Hardware).collect()
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

    /// Reads the zoo for one pool.
    ///
    /// # Errors
    /// As [`all`](Self::all), without the hardware.
    pub(crate) fn read(config: &Config, pool: &PoolConfig) -> Result<Self, AssemblyError> {
        if let Some(apps) = stand_in::brought(config, pool)? {
            return Ok(Self::of_profile(config, pool, apps));
        }
        let apps = config.apps.iter().enumerate();
        let apps = apps.filter(|(_, app)| pool.apps.contains(&app.name));
        let (mut zoo, mut refused) = (Vec::new(), Vec::new());
        let mut choices: Vec<AppChoice> = Vec::new();
        for (i, app) in apps {
            let at = format!("app[{i}]");
            match ZooApp::open(&app.zoo.join(&app.name)) {
                Ok(found) => {
                    refused.extend(unknown_variants(config, &at, app, &found));
                    zoo.push(found);
                }
                Err(error) => refused.push(AssemblyError::Zoo {
                    origin: config.written.origin(&format!("{at}.name")),
                    app: app.name.clone(),
                    error: Box::new(error),
                    hint: hint(&app.name, &apps_of(&app.zoo)),
                }),
            }
            choices.push(app.choice());
        }
        AssemblyError::all(refused)?;
        let chosen = Zoo {
            dir: zoo.first().map(|app| app.dir.clone()).unwrap_or_default(),
            apps: zoo,
        };
        let manifest = Manifest::choose(&chosen, &choices)
            .map_err(|error| each_refused(config, &chosen, &choices, error))?;
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
        let workers = config.workers_of(pool);
        check_non_finite(config, &chosen.apps, &workers)?;
        if config.profile.stand_in {
            stand_in::check_tasks(config, &chosen.apps)?;
        }
        let plan = Self {
            config: pool.clone(),
            tensors,
            manifest,
            evidence: choices.iter().map(|choice| choice.evidence).collect(),
            zoo: chosen.apps,
            kinds: kinds(&workers),
            workers,
            finder: finder(config),
            stand_in: config.profile.stand_in,
            is_brought: false,
        };
        plan.remotes()?;
        Ok(plan)
    }

    /// A pool of apps that a profile brings. Its workers are of the profile's kinds, round-robin.
    fn of_profile(config: &Config, pool: &PoolConfig, apps: BroughtApps) -> Self {
        Self {
            config: pool.clone(),
            tensors: apps.tensors,
            manifest: apps.manifest,
            evidence: Vec::new(),
            zoo: Vec::new(),
            workers: config.workers_of(pool),
            kinds: apps.kinds,
            finder: finder(config),
            stand_in: true,
            is_brought: true,
        }
    }

    /// Whether a pool of one plan serves as a pool of the other. Weights are followed on their own.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let cards = |zoo: &ZooApp| (zoo.dir.clone(), zoo.card.clone());
        self.config == other.config
            && self.workers == other.workers
            && self.stand_in == other.stand_in
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

    /// How the server of each worker is used; `None` for workers of this process.
    ///
    /// # Errors
    /// The models of a worker are not those of the pool.
    pub(super) fn remotes(&self) -> Result<Vec<Option<RemoteOptions>>, AssemblyError> {
        let workers = self.workers.iter();
        workers
            .map(|worker| remote::options(worker, &self.manifest, &self.tensors))
            .collect()
    }

    /// The kinds of its workers; those on other machines are measured on their first worker.
    pub(super) fn kinds_to_measure(&self) -> Vec<KindToMeasure> {
        let of = |kind: &KindToMeasure| {
            let worker = self
                .workers
                .iter()
                .find(|worker| kind_of(worker) == kind.name);
            // Measuring comes after the check of the models.
            let remote = worker.and_then(|worker| {
                let options = remote::options(worker, &self.manifest, &self.tensors);
                worker.remote.as_ref().zip(options.ok().flatten())
            });
            remote::benched(kind, remote, &self.finder)
        };
        self.kinds.iter().map(of).collect()
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

fn finder(config: &Config) -> Finder {
    Finder {
        resolver: config.resolver.clone(),
        etcd: config.etcd.options().map(Etcd::shared),
    }
}

/// The variants that an app of the zoo does not have.
fn unknown_variants(
    config: &Config,
    at: &str,
    app: &AppConfig,
    found: &ZooApp,
) -> Vec<AssemblyError> {
    let known: Vec<String> = found.variants.iter().map(|v| v.card.name.clone()).collect();
    let named = app.variants.iter().flatten().enumerate();
    let unknown = named.filter(|(_, name)| {
        // A wrong precision has its own error.
        Precision::split(name).is_ok() && found.variant_at(name).is_none()
    });
    unknown
        .map(|(j, name)| {
            let field = format!("{at}.variants[{j}]");
            AssemblyError::Variant {
                origin: config.written.origin(&field),
                field,
                variant: name.clone(),
                choice: format!(
                    "{}, which has: {}{}",
                    found.dir.display(),
                    known.join(", "),
                    hint(name, &known)
                ),
            }
        })
        .collect()
}

/// The first error of each app: a choice of all of them stops at the first app.
fn each_refused(
    config: &Config,
    zoo: &Zoo,
    choices: &[AppChoice],
    first: ManifestError,
) -> AssemblyError {
    let each = choices.iter().filter_map(|choice| {
        let error = Manifest::choose(zoo, std::slice::from_ref(choice)).err()?;
        Some(AssemblyError::Manifest {
            origin: config.written.origin(&config.app_field(&choice.app)),
            error,
        })
    });
    let each: Vec<_> = each.collect();
    match AssemblyError::all(each) {
        Err(error) => error,
        // Only all of them together are refused.
        Ok(()) => AssemblyError::Manifest {
            origin: config.written.origin("app"),
            error: first,
        },
    }
}

/// The apps in a folder.
fn apps_of(zoo: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(zoo).into_iter().flatten().flatten();
    let apps = entries.filter(|entry| entry.path().join(APP_CARD).is_file());
    let names = apps.filter_map(|app| app.file_name().into_string().ok());
    names.collect()
}

/// The end of a message about an unknown name.
fn hint(name: &str, known: &[String]) -> String {
    closest(name, known.iter().map(String::as_str))
        .map_or_else(String::new, |close| format!("; did you mean `{close}`?"))
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
        origin: config.written.origin(&config.app_field(&app.card.name)),
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
