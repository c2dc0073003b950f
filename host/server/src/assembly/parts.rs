//! A pool with its profile: the catalog, the executors and all other parts that a driver starts
//! from.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{Catalog, WorkerSpec};
use switchyard_core::ids::{ExitId, KindId, VariantId};
use switchyard_core::profile::{Profile, ProfileRow};
use switchyard_core::time::Micros;
use switchyard_executor::manifest::EvidenceChoice;
use switchyard_executor::{CandleExecutor, Device, Executor, ModelSource, Weights};
use switchyard_policy::recording::Header;
use switchyard_profile::Percentile;
use switchyard_remote::StageRanges;

use super::error::AssemblyError;
use super::hardware::{self, kind_of};
use super::plan::PoolPlan;
use super::profile::Measured;
use super::remote;
use super::stand_in;
use crate::config::{Config, WorkerConfig};
use crate::driver::{
    PAUSE_MAX, PoolExecutor, PoolParts, PoolWeights, REMOTE_PAUSE_MAX, VariantCounters,
};
use crate::evidence::{Counted, EvidenceModel, EvidenceModels};
use crate::recorder::RecordOptions;

/// The pool whose place another one takes.
#[derive(Clone, Copy)]
pub(crate) struct Predecessor<'a> {
    pub(crate) plan: &'a PoolPlan,
    pub(crate) weights: &'a PoolWeights,
    pub(crate) counters: &'a VariantCounters,
}

impl PoolPlan {
    /// Joins everything to the parts that a driver starts from. Variants that are as in `before` keep
    /// their weights in memory and their counters.
    ///
    /// # Errors
    /// The evidence model of an app cannot be read.
    pub(crate) fn parts(
        &self,
        measured: &Measured,
        inbox_max: usize,
        drift_ratio: f64,
        before: Option<Predecessor<'_>>,
    ) -> Result<PoolParts, AssemblyError> {
        let catalog = Arc::new(self.catalog(measured)?);
        if self.stand_in {
            tracing::warn!(
                pool = self.config.name,
                "profile.stand_in: the workers compute nothing, every answer is made up"
            );
        }
        let source: Arc<dyn ModelSource> = Arc::clone(&self.manifest.source) as _;
        let variants = catalog.variants.len();
        let (weights, counters) = match before {
            None => (Weights::new(source), VariantCounters::new(variants)),
            Some(before) => {
                let same = |id| self.same_variant(id, before.plan);
                let weights = before.weights.weights();
                (
                    weights.sharing(source, same, variants as u32),
                    before.counters.continuing(variants, same),
                )
            }
        };
        let pinned = self.pinned()?;
        let devices = match self.stand_in {
            true => vec![Device::Cpu; self.workers.len()],
            false => hardware::open(&self.workers)?,
        };
        let mut remotes = self.remotes()?;
        for (options, spec) in remotes.iter_mut().zip(&catalog.workers) {
            if let (Some(options), true) = (options, spec.can.stage_ranges) {
                options.stages = StageRanges::Required;
            }
        }
        let remotes = remote::servers(&self.workers, remotes, &self.finder)?;
        let workers = self.workers.iter().zip(&catalog.workers).zip(&pinned);
        let executors = workers.zip(&devices).zip(remotes).map(
            |((((worker, spec), pinned), device), remote)| {
                if let Some(server) = remote {
                    return PoolExecutor {
                        address: Some(server.address()),
                        build: remote::build(server, &worker.name),
                        threads: 1,
                        cores: Vec::new(),
                        pause_max: REMOTE_PAUSE_MAX,
                    };
                }
                if self.stand_in {
                    return PoolExecutor {
                        address: None,
                        build: stand_in::build(&catalog, spec),
                        threads: 1,
                        cores: worker.cores.clone(),
                        pause_max: PAUSE_MAX,
                    };
                }
                let budget = worker.memory_bytes();
                let loads = (0..catalog.variants.len() as u32).map(VariantId);
                let loads = loads.map(|variant| catalog.profile.load_time(spec.kind, variant));
                let loads: Vec<_> = loads.collect();
                let (weights, device) = (Arc::clone(&weights), device.clone());
                let pinned = pinned.clone();
                let build = move || {
                    let (weights, device) = (Arc::clone(&weights), device.clone());
                    let executor =
                        CandleExecutor::new(weights, device, budget).with_loads(loads.clone());
                    let pinned = pinned.iter().copied();
                    let executor = pinned.fold(executor, CandleExecutor::with_pinned);
                    Ok(Box::new(executor) as Box<dyn Executor>)
                };
                PoolExecutor {
                    build: Box::new(build),
                    threads: worker.threads,
                    cores: worker.cores.clone(),
                    pause_max: PAUSE_MAX,
                    address: None,
                }
            },
        );
        Ok(PoolParts {
            name: self.config.name.clone(),
            scheduler: SchedulerConfig {
                tells_decisions: self.config.record.is_some(),
                ..self.scheduler()
            },
            executors: executors.collect(),
            weights: PoolWeights::new(weights, devices),
            pinned,
            medians: match self.stand_in {
                // The time that its workers take.
                true => catalog.profile.clone(),
                false => measured.medians(self)?,
            },
            drift_ratio,
            evidence: self.evidence()?,
            traces: None,
            inbox_max,
            counters: Arc::new(counters),
            catalog,
        })
    }

    /// The catalog of its first worker without a profile, and its executor, for a worker without a
    /// scheduler.
    ///
    /// # Errors
    /// The device of the worker cannot be opened, or its pinned variants do not fit.
    pub(crate) fn alone(&self) -> Result<(Catalog, Box<dyn Executor>), AssemblyError> {
        let source: Arc<dyn ModelSource> = Arc::clone(&self.manifest.source) as _;
        let devices = hardware::open(&self.workers)?;
        let device = devices.into_iter().next().unwrap_or(Device::Cpu);
        let budget = self.workers.first().map_or(0, WorkerConfig::memory_bytes);
        let executor =
            CandleExecutor::new(Weights::new(source), device, budget).with_parked_bytes_max(budget);
        let pinned = self.pinned()?.into_iter().flatten();
        let executor = pinned.fold(executor, CandleExecutor::with_pinned);
        Ok((self.catalog_with(Profile::default()), Box::new(executor)))
    }

    /// The catalog that a policy chooses from.
    ///
    /// # Errors
    /// The profile lacks a variant or a kind of worker of this pool.
    pub fn catalog(&self, measured: &Measured) -> Result<Catalog, AssemblyError> {
        let mut catalog = self.catalog_with(measured.table(self)?);
        if self.is_brought {
            return Ok(catalog);
        }
        measured.add_confusions(&self.manifest.apps, &mut catalog.variants)?;
        Ok(catalog)
    }

    fn catalog_with(&self, profile: Profile) -> Catalog {
        let kinds: Vec<String> = self.kinds.iter().map(|kind| kind.name.clone()).collect();
        let workers = self.workers.iter().enumerate().map(|(at, worker)| {
            let name = kind_of(worker);
            let kind = match self.is_brought {
                true => at % kinds.len().max(1),
                false => kinds
                    .iter()
                    .position(|kind| *kind == name)
                    .unwrap_or_default(),
            };
            WorkerSpec {
                name: worker.name.clone(),
                kind: KindId(kind as u32),
                memory_bytes: match self.is_brought {
                    // As in a simulation: a profile has no budgets.
                    true => u64::MAX,
                    false => worker.memory_bytes(),
                },
                queue_max: worker.queue_max,
                parked_max: worker.parked_max,
                can: remote::capabilities(
                    worker,
                    KindId(kind as u32),
                    &self.manifest.variants,
                    &profile,
                ),
                transfer: Micros::ZERO,
                outstanding: worker
                    .remote
                    .as_ref()
                    .map_or(1, |remote| remote.outstanding),
            }
        });
        Catalog {
            generation: 1,
            apps: self.manifest.apps.clone(),
            variants: self.manifest.variants.clone(),
            workers: workers.collect(),
            profile,
            kinds,
        }
    }

    /// A millisecond for each batch to an exit, and for each stage.
    fn unmeasured(&self) -> Profile {
        let kinds = (0u32..).map(KindId).zip(&self.kinds).map(|(kind, _)| kind);
        let rows = kinds.flat_map(|kind| {
            let variants = (0u32..).map(VariantId).zip(&self.manifest.variants);
            variants.flat_map(move |(variant, card)| {
                let exits = (0u32..).map(ExitId).zip(&card.exits);
                let whole = exits.map(|(id, exit)| (0, exit.after_stage, Some(id)));
                let stages = (0..card.stages).map(|stage| (stage, stage + 1, None));
                let batch_max = card.max_batch;
                let cells = whole.chain(stages);
                cells.flat_map(move |(from_stage, to_stage, exit)| {
                    [1, batch_max].map(|batch| ProfileRow {
                        kind,
                        variant,
                        from_stage,
                        to_stage,
                        exit,
                        batch,
                        latency: Micros::from_millis(1),
                        energy_uj: None,
                    })
                })
            })
        });
        Profile::new(Percentile::P95.share(), rows, [])
    }

    /// The variant of another plan that is loaded from the same files in the same way.
    fn same_variant(&self, id: VariantId, other: &Self) -> Option<VariantId> {
        let entry = self.manifest.source.entries().get(id.index())?;
        let mut others = other.manifest.source.entries().iter();
        let at = others.position(|other| other == entry)?;
        u32::try_from(at).ok().map(VariantId)
    }

    /// File, size and header of the recording of its windows.
    pub(crate) fn record(&self, catalog: &Catalog) -> Option<RecordOptions> {
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

    /// The variants that each worker never evicts.
    fn pinned(&self) -> Result<Vec<Vec<VariantId>>, AssemblyError> {
        let workers = self.workers.iter();
        workers.map(|worker| self.pinned_on(worker)).collect()
    }

    fn pinned_on(&self, worker: &WorkerConfig) -> Result<Vec<VariantId>, AssemblyError> {
        let entries = self.manifest.source.entries();
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
        Ok(pinned)
    }

    /// Everything that keeps the pool from starting, and the catalog that its policy gets. Without a
    /// profile each batch takes a millisecond there, so that a policy can be configured with it.
    pub(crate) fn examined(
        &self,
        config: &Config,
        measured: Option<&Measured>,
    ) -> (Option<Catalog>, Vec<AssemblyError>) {
        let mut errors: Vec<AssemblyError> = Vec::new();
        for served in self.served() {
            let field = config.app_field(&served.app.card.name);
            let refused = served.can_run().map_err(|error| AssemblyError::Manifest {
                origin: config.written.origin(&field),
                error,
            });
            errors.extend(refused.err());
        }
        let pins = self.workers.iter().map(|worker| self.pinned_on(worker));
        errors.extend(pins.filter_map(Result::err));
        if !self.stand_in {
            errors.extend(hardware::open(&self.workers).err().map(AssemblyError::from));
        }
        errors.extend(self.evidence().err());
        let catalog = match measured {
            Some(measured) => self.catalog(measured),
            None => Ok(self.catalog_with(self.unmeasured())),
        };
        match catalog {
            Ok(catalog) => (Some(catalog), errors),
            Err(error) => {
                errors.push(error);
                (None, errors)
            }
        }
    }

    fn evidence(&self) -> Result<EvidenceModels, AssemblyError> {
        if self.is_brought {
            return Ok(self.manifest.apps.iter().map(|_| None).collect());
        }
        let choices = self.manifest.apps.iter().zip(&self.evidence);
        self.zoo
            .iter()
            .zip(choices)
            .map(|(app, (served, choice))| {
                let model = app.sneakpeek().map_err(|error| AssemblyError::Evidence {
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
