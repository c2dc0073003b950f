//! A pool with everything that runs for it: policies, shadow, reloads, preparer, recording.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::bounded;
use switchyard_core::ids::AppId;
use switchyard_core::policy::FALLBACK_NAME;
use switchyard_models::zoo::ZooApp;
use switchyard_policy::loader::{Loader, LoaderOptions};
use switchyard_policy::{EngineOptions, LoadedCode, PolicyEngine};
use switchyard_remote::{Etcd, Fence, SharedKey};
use tokio::sync::oneshot;

use super::error::StartError;
use super::fenced::fenced;
use crate::admin::AdminPool;
use crate::assembly::{Measured, PoolPlan, Predecessor};
use crate::clock::Clock;
use crate::config::{Config, PoolConfig};
use crate::driver::{AppState, Message, Pool, PoolHandle, PoolParts, PoolWeights};
use crate::policies::{Policies, PoliciesHandle, PoliciesParts, SharedPolicy, hint};
use crate::prepare::{Preparer, PreparerParts};
use crate::recorder::{RecordOptions, Recorder};
use crate::reloads::{Reloads, ReloadsParts};
use crate::shadow::ShadowOwner;
use crate::shutdown::Cancel;
use crate::telemetry::Registry;
use crate::traces::Tracer;

/// Longest wait for a driver that gives its recorder back.
const DRIVER_PATIENCE: Duration = Duration::from_secs(10);

/// How often a policy that is being loaded is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Compiled policies that a pool keeps in memory: the one that serves and the one before.
const CODES_KEPT: usize = 2;

/// The parts that all pools of a server share.
#[derive(Clone)]
pub(super) struct PoolStarter {
    pub(super) clock: Clock,
    pub(super) registry: Registry,
    traces: Option<Arc<Tracer>>,
    engine: PolicyEngine,
    /// None: no other scheduler may be active.
    pub(super) fence: Option<Arc<Fence>>,
}

/// A policy that does not serve.
enum Untried {
    /// It is being loaded.
    Wait,
    /// For this reason.
    Refused(String),
}

/// A pool that serves.
pub(super) struct RunningPool {
    // Dropped in this order: the threads that send messages to the driver, then the driver.
    policies: Policies,
    shadow: ShadowOwner,
    preparer: Mutex<Option<Preparer>>,
    reloads: Reloads,
    pool: Pool,
    plan: PoolPlan,
    weights: PoolWeights,
    record: Option<RecordOptions>,
    policy_file: PathBuf,
    /// The file of the profile.
    profile: PathBuf,
}

// === impl PoolStarter ===

impl PoolStarter {
    /// For the pools of this configuration.
    ///
    /// # Errors
    /// The engine cannot be set up.
    pub(super) fn try_new(config: &Config) -> Result<Self, StartError> {
        let (clock, registry) = (Clock::start(), Registry::new());
        Ok(Self {
            traces: traces(config, clock, &registry)?,
            fence: config.etcd.election.as_ref().map(|_| Arc::default()),
            clock,
            registry,
            engine: PolicyEngine::live(&EngineOptions {
                compile_time_max: Duration::from_secs(config.policies.compile_timeout_s),
                ..EngineOptions::default()
            })?,
        })
    }

    /// Starts a pool, which loads its models and its policy from then on. It neither records nor
    /// prepares yet: the pool `before`, whose place it takes, may.
    ///
    /// # Errors
    /// A part of it cannot be used.
    pub(super) fn start(
        &self,
        config: &Config,
        plan: PoolPlan,
        measured: &Measured,
        before: Option<&RunningPool>,
    ) -> Result<RunningPool, StartError> {
        let registry = &self.registry;
        let before = before.map(RunningPool::as_predecessor);
        let parts = plan.parts(
            measured,
            config.server.inbox_max,
            config.profile.drift_ratio,
            before,
        )?;
        let executors = parts.executors.into_iter();
        let executors = executors.map(|executor| fenced(executor, self.fence.as_ref()));
        let parts = PoolParts {
            traces: self.traces.clone(),
            executors: executors.collect(),
            ..parts
        };
        let weights = parts.weights.clone();
        let record = plan.record(&parts.catalog);
        let pool = Pool::start(parts, self.clock, registry)?;
        let reloads = Reloads::start(ReloadsParts {
            pool: Arc::clone(pool.handle()),
            weights: weights.clone(),
            variants: plan.followed(),
            registry: registry.clone(),
        });
        let policy_file = plan.config.policy_file(&config.policies.dir);
        let policies = Policies::start(PoliciesParts {
            pool: Arc::clone(pool.handle()),
            file: policy_file.clone(),
            bundled: config.bundled_policies.clone(),
            settings: plan.config.settings.clone(),
            loader: self.loader(config, &plan.config),
            window_budget: plan.config.window_budget(),
            history: config.policies.history,
            versions: config.policies.versions(&plan.config.name),
            registry: registry.clone(),
            shared: self.shared(config, &plan.config.name),
        });
        let policies = policies.map_err(|error| StartError::Policies {
            pool: plan.config.name.clone(),
            error,
        })?;
        Ok(RunningPool {
            shadow: self.shadow(config, &plan, &pool)?,
            policies,
            preparer: Mutex::default(),
            reloads,
            pool,
            plan,
            weights,
            record,
            policy_file,
            profile: measured.path.clone(),
        })
    }

    /// Where other schedulers have the pool's policy too.
    fn shared(&self, config: &Config, pool: &str) -> Option<SharedPolicy> {
        let folder = config.etcd.policies.as_ref()?;
        Some(SharedPolicy {
            key: SharedKey {
                etcd: Etcd::shared(config.etcd.options()?),
                key: format!("{folder}/{pool}"),
            },
            fence: self.fence.clone(),
        })
    }

    fn loader(&self, config: &Config, pool: &PoolConfig) -> Loader {
        let options = LoaderOptions {
            cache_dir: config.policies.cache.clone(),
            limits: pool.limits(),
            seed: pool.seed,
        };
        Loader::new(self.engine.clone(), options)
            .with_allow_list(config.policies.allow.clone())
            .with_loaded_code(LoadedCode::new(CODES_KEPT))
    }

    /// The place of the pool's shadow, with the one that is configured.
    fn shadow(
        &self,
        config: &Config,
        plan: &PoolPlan,
        pool: &Pool,
    ) -> Result<ShadowOwner, StartError> {
        let (starter, config_for, of_pool) = (self.clone(), config.clone(), plan.config.clone());
        let loader = Box::new(move || starter.loader(&config_for, &of_pool));
        let settings = plan.config.settings.clone().unwrap_or_default();
        let (pool, registry) = (Arc::clone(pool.handle()), self.registry.clone());
        let owner = ShadowOwner::new(pool, loader, settings, registry);
        if let Some(shadow) = &plan.config.shadow {
            let file = shadow.policy_file(&config.policies.dir);
            let started = owner.slot().start(file, shadow.settings.clone());
            started.map_err(|error| StartError::Shadow {
                pool: plan.config.name.clone(),
                error,
            })?;
        }
        Ok(owner)
    }
}

/// The tracer that the configuration asks for.
#[cfg(feature = "traces")]
fn traces(
    config: &Config,
    clock: Clock,
    registry: &Registry,
) -> Result<Option<Arc<Tracer>>, StartError> {
    let Some(traces) = &config.server.traces else {
        return Ok(None);
    };
    let started = Tracer::start(traces, clock, registry).map_err(StartError::Traces)?;
    Ok(Some(Arc::new(started)))
}

/// None: the check of the configuration refuses `server.traces`.
#[cfg(not(feature = "traces"))]
fn traces(_: &Config, _: Clock, _: &Registry) -> Result<Option<Arc<Tracer>>, StartError> {
    Ok(None)
}

// === impl RunningPool ===

impl RunningPool {
    pub(super) fn handle(&self) -> &Arc<PoolHandle> {
        self.pool.handle()
    }

    pub(super) fn policies(&self) -> &PoliciesHandle {
        self.policies.handle()
    }

    /// Waits until its policy has been tried. `bundled` has the policies that come with the program.
    ///
    /// # Errors
    /// The policy was refused.
    pub(super) fn require_policy(
        &self,
        bundled: Option<&Path>,
        cancel: &Cancel,
    ) -> Result<(), StartError> {
        loop {
            match self.untried(bundled, cancel) {
                None => return Ok(()),
                Some(Untried::Wait) => std::thread::sleep(LOOK_EVERY),
                Some(Untried::Refused(reason)) => {
                    let pool = self.handle().name().to_owned();
                    return Err(StartError::NoPolicy { pool, reason });
                }
            }
        }
    }

    /// Whether its policy serves, or has been taken off for its faults.
    pub(super) fn has_policy(&self) -> bool {
        self.policies().status().active.is_some()
    }

    /// The next step of a start that requires a policy; `None`: the policy serves, or the start is
    /// cancelled.
    fn untried(&self, bundled: Option<&Path>, cancel: &Cancel) -> Option<Untried> {
        let status = self.policies().status();
        let is_native = self.plan.config.policy == FALLBACK_NAME && !self.policy_file.exists();
        if is_native || status.active.is_some() || cancel.is_cancelled() {
            return None;
        }
        let Some(tried) = status.swaps.back() else {
            return Some(Untried::Wait);
        };
        let reason = tried.error.clone().unwrap_or_default();
        let hint = match self.policy_file.exists() {
            true => String::new(),
            false => hint(&self.policy_file, bundled),
        };
        Some(Untried::Refused(format!("{reason}{hint}")))
    }

    pub(super) fn plan(&self) -> &PoolPlan {
        &self.plan
    }

    /// As the admin port reaches it.
    pub(super) fn admin(&self) -> AdminPool {
        AdminPool {
            pool: Arc::clone(self.handle()),
            policies: self.policies.handle().clone(),
            reloads: self.reloads.log().clone(),
            shadow: self.shadow.slot().clone(),
        }
    }

    fn as_predecessor(&self) -> Predecessor<'_> {
        Predecessor {
            plan: &self.plan,
            weights: &self.weights,
            counters: self.handle().counters(),
        }
    }

    /// Records its windows from now on, if that is configured.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn record(&self, registry: &Registry) -> Result<(), StartError> {
        let Some(options) = &self.record else {
            return Ok(());
        };
        let recorder = Recorder::start(options.clone(), registry);
        let recorder = recorder.map_err(|error| StartError::Record {
            pool: self.handle().name().to_owned(),
            error,
        })?;
        self.handle().send(Message::Record(recorder));
        Ok(())
    }

    /// Ends its recording. The file is whole and closed afterwards.
    pub(super) fn end_recording(&self) {
        if self.record.is_none() {
            return;
        }
        let (reply, recorder) = bounded(1);
        self.handle().send(Message::TakeRecorder(reply));
        // An error means that the driver has ended, and with it the recording.
        drop(recorder.recv_timeout(DRIVER_PATIENCE));
    }

    /// Runs its prepare command from now on, if it is configured.
    ///
    /// # Errors
    /// The path of this program is unknown, or the system refuses a thread.
    pub(super) fn prepare(&self, registry: &Registry) -> Result<(), StartError> {
        let Some(prepare) = &self.plan.config.prepare else {
            return Ok(());
        };
        let zoo_of = |app: &ZooApp| app.dir.parent().unwrap_or(&app.dir).to_path_buf();
        let parts = PreparerParts {
            pool: Arc::clone(self.handle()),
            zoos: self.plan.apps().iter().map(zoo_of).collect(),
            config: prepare.clone(),
            artifacts: self.policy_file.with_extension(""),
            profile: self.profile.clone(),
            registry: registry.clone(),
        };
        let started = Preparer::start(parts).map_err(|error| StartError::Prepare {
            pool: self.handle().name().to_owned(),
            error,
        })?;
        *self.preparer.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        Ok(())
    }

    /// Ends its prepare command; a run under way is killed.
    pub(super) fn end_preparing(&self) {
        let mut preparer = self.preparer.lock().unwrap_or_else(PoisonError::into_inner);
        drop(preparer.take());
    }

    /// Unloads the apps that are unloaded in the pool `before`.
    pub(super) fn unload_as(&self, before: &Self) {
        let (ours, theirs) = (self.handle(), before.handle());
        for (id, app) in (0..).map(AppId).zip(&ours.catalog().apps) {
            let mut known = theirs.catalog().apps.iter();
            let Some(at) = known.position(|earlier| earlier.name == app.name) else {
                continue;
            };
            let state = theirs.models().app(AppId(at as u32));
            if matches!(state, AppState::Unloaded | AppState::Unloading) {
                let (known, _) = oneshot::channel();
                ours.models().begin_unload(id);
                ours.send(Message::Unload(id, known));
            }
        }
    }

    /// Why an app of it has no model, if one has none.
    pub(super) fn failed_app(&self) -> Option<String> {
        let (catalog, models) = (self.handle().catalog(), self.handle().models());
        (0..).map(AppId).zip(&catalog.apps).find_map(|(id, app)| {
            let mut failures = catalog
                .variants_of(id)
                .map(|(variant, _)| models.failure(variant));
            let first = failures.next()??;
            failures
                .all(|failure| failure.is_some())
                .then(|| format!("app {}: {first}", app.name))
        })
    }
}
