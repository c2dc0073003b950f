//! A whole server: pools, policies, listeners, and the shutdown.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_models::zoo::ZooApp;
use switchyard_policy::engine::EngineError;
use switchyard_policy::loader::{Loader, LoaderOptions};
use switchyard_policy::{EngineOptions, PolicyEngine};
use switchyard_profile::MeasureError;
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;

use crate::admin::{self, Admin, AdminPool};
use crate::assembly::{AssemblyError, Measured, PoolPlan};
use crate::backend::{OutputsError, PoolBackend};
use crate::clock::Clock;
use crate::config::{Config, PoolConfig, ServerConfig};
use crate::descriptors;
use crate::driver::{Message, Pool, PoolError, PoolHandle};
use crate::ingress;
use crate::policies::{Policies, PoliciesError, PoliciesHandle, PoliciesParts};
use crate::prepare::{Preparer, PreparerError, PreparerParts};
use crate::readiness::Readiness;
use crate::reloads::{Reloads, ReloadsParts};
use crate::shadow::{Shadow, ShadowError, ShadowParts};
use crate::shutdown::{Cancel, driver_failure, end_within};
use crate::telemetry::Registry;

/// How often recorded samples are folded into histograms.
const UPKEEP: Duration = Duration::from_secs(5);

/// Time from the failure of a driver to the end of the process: clients of other pools get their
/// answers, and load balancers see that this server is not alive.
pub const FAILURE_GRACE: Duration = Duration::from_secs(10);

/// Time for the pools to drop the requests of connections that were cut at the drain timeout.
const POOLS_DRAIN_MIN: Duration = Duration::from_millis(250);

/// Most time that the end of all threads may take, after the drain. Together with the rest of a stop
/// it stays below two seconds.
const STOP_LIMIT: Duration = Duration::from_millis(1_500);

/// A server before it serves.
pub struct Server {
    // Dropped in this order: the threads that send messages to the drivers, then the drivers.
    policies: Vec<Policies>,
    shadows: Vec<Option<Shadow>>,
    preparers: Vec<Option<Preparer>>,
    reloads: Vec<Reloads>,
    pools: Vec<Pool>,
    backend: Arc<PoolBackend>,
    admin: Admin,
    config: Config,
}

/// The sockets of a server.
pub struct Listeners {
    http: TcpListener,
    admin: TcpListener,
}

/// Why a server ended without being asked to.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The driver of a pool panicked.
    #[error(
        "pool {pool}: its scheduler failed; restart the server, and report the panic in its log"
    )]
    Driver {
        /// The pool.
        pool: String,
    },
    /// The thread that accepts connections cannot be started.
    #[error("the HTTP port: no thread accepts connections: {0}; raise the limit of threads")]
    Accept(#[from] io::Error),
}

/// Why a server could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The zoo or the profile cannot be used.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// A card names outputs that the server does not make.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// A pool could not be started.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The wasm engine cannot be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A pool's policies cannot be managed.
    #[error("pool {pool}: {error}")]
    Policies {
        /// The pool.
        pool: String,
        /// The reason.
        error: PoliciesError,
    },
    /// A pool's shadow cannot be started.
    #[error("pool {pool}: shadow: {error}")]
    Shadow {
        /// The pool.
        pool: String,
        /// The reason.
        error: ShadowError,
    },
    /// A pool's prepare command cannot be used.
    #[error("pool {pool}: prepare: {error}")]
    Prepare {
        /// The pool.
        pool: String,
        /// The reason.
        error: PreparerError,
    },
    /// Metrics could not be set up.
    #[error("metrics: {0}")]
    Metrics(#[from] metrics_exporter_prometheus::BuildError),
    /// An address cannot be listened on.
    #[error("server.{field}: {address}: {error}{}", way_out(field, error.kind()))]
    Listen {
        /// The field of the configuration.
        field: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        error: io::Error,
    },
}

// === impl StartError ===

impl StartError {
    /// Whether the start was cancelled and did not fail.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Assembly(AssemblyError::Measure(MeasureError::Cancelled))
        )
    }
}

// === impl Server ===

impl Server {
    /// Reads the zoo, reads or measures the profile, starts pools and policies.
    ///
    /// # Errors
    /// A part of the configuration cannot be used on this machine.
    pub fn start(config: Config) -> Result<Self, StartError> {
        Self::start_unless(config, &Cancel::default())
    }

    /// As [`start`](Self::start), unless it is cancelled while it measures.
    ///
    /// # Errors
    /// Also when it was cancelled.
    pub fn start_unless(mut config: Config, cancel: &Cancel) -> Result<Self, StartError> {
        // First, because models and policies open files too.
        config.server.connections_max = descriptors::prepare(config.server.connections_max);
        let plans = PoolPlan::all(&config)?;
        let measured = Measured::obtain_unless(&config, &plans, cancel)?;
        Self::start_pools(config, &plans, &measured)
    }

    fn start_pools(
        config: Config,
        plans: &[PoolPlan],
        measured: &Measured,
    ) -> Result<Self, StartError> {
        let clock = Clock::start();
        let registry = Registry::try_new()?;
        let readiness = Arc::new(Readiness::default());
        let engine = PolicyEngine::live(&EngineOptions {
            compile_time_max: Duration::from_secs(config.policies.compile_timeout_s),
            ..EngineOptions::default()
        })?;
        let (mut pools, mut policies, mut served) = (Vec::new(), Vec::new(), Vec::new());
        let (mut reloads, mut shadows, mut preparers) = (Vec::new(), Vec::new(), Vec::new());
        for plan in plans {
            let parts = plan.parts(
                measured,
                config.server.inbox_max,
                config.profile.drift_ratio,
            )?;
            let weights = parts.weights.clone();
            let pool = Pool::start(parts, clock, &readiness, &registry)?;
            reloads.push(Reloads::start(ReloadsParts {
                pool: Arc::clone(pool.handle()),
                weights,
                variants: plan.followed(),
                registry: registry.clone(),
            }));
            let parts = PoliciesParts {
                pool: Arc::clone(pool.handle()),
                file: plan.config.policy_file(&config.policies.dir),
                settings: plan.config.settings.clone(),
                loader: loader(&engine, &config, &plan.config),
                window_budget: plan.config.window_budget(),
                history: config.policies.history,
                readiness: Arc::clone(&readiness),
                registry: registry.clone(),
            };
            let started = Policies::start(parts).map_err(|error| StartError::Policies {
                pool: plan.config.name.clone(),
                error,
            })?;
            policies.push(started);
            preparers.push(preparer(&config, plan, &pool, &measured.path, &registry)?);
            shadows.push(shadow(&engine, &config, plan, &pool, &registry)?);
            served.push((Arc::clone(pool.handle()), plan.tensors.clone()));
            pools.push(pool);
        }
        let backend = PoolBackend::try_new(
            &served,
            &config.server,
            Arc::clone(&readiness),
            registry.clone(),
        )?;
        let admin_pools = pools
            .iter()
            .zip(&policies)
            .zip(reloads.iter().zip(&shadows))
            .map(|((pool, policies), (reloads, shadow))| AdminPool {
                pool: Arc::clone(pool.handle()),
                policies: policies.handle().clone(),
                reloads: reloads.log().clone(),
                shadow: shadow.as_ref().map(|shadow| shadow.log().clone()),
            });
        Ok(Self {
            admin: Admin::new(admin_pools.collect(), readiness, registry, clock),
            backend: Arc::new(backend),
            pools,
            policies,
            shadows,
            preparers,
            reloads,
            config,
        })
    }

    /// The handles that swap the pools' policies from inside the process.
    pub fn policies(&self) -> Vec<PoliciesHandle> {
        self.policies.iter().map(|p| p.handle().clone()).collect()
    }

    /// Serves until `shutdown` completes, then drains: readiness answers 503, new requests are refused,
    /// and accepted ones are served for at most the drain timeout. Returns at most two seconds later,
    /// in whatever state the server is.
    ///
    /// # Errors
    /// The driver of a pool panicked, liveness has answered 503 for [`FAILURE_GRACE`], and the process
    /// should be restarted; or no connection can be accepted.
    pub async fn serve(
        self,
        listeners: Listeners,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let registry = self.admin.registry().clone();
        let upkeep = tokio::spawn(async move {
            let mut tick = tokio::time::interval(UPKEEP);
            loop {
                tick.tick().await;
                registry.run_upkeep();
            }
        });
        let admin = tokio::spawn(admin::serve(listeners.admin, self.admin));
        let limits = self.config.server.limits();
        let handles: Vec<_> = self.pools.iter().map(|p| Arc::clone(p.handle())).collect();
        let failed_pool = || {
            let failed = handles.iter().find(|pool| pool.has_failed());
            failed.map(|pool| pool.name().to_owned())
        };
        let (mut failed, mut stopped_at) = (None, None);
        let mut flush = None;
        let drain_delay = limits.drain_delay;
        let stop = async {
            tokio::select! {
                () = shutdown => {}
                pool = driver_failure(failed_pool, FAILURE_GRACE) => {
                    failed = Some(ServeError::Driver { pool });
                }
            }
            stopped_at = Some(Instant::now());
            flush = Some(tokio::spawn(flush_after(drain_delay, handles.clone())));
        };
        let drained = ingress::serve(listeners.http, self.backend, limits, stop).await;
        let now = Instant::now();
        let deadline = stopped_at.unwrap_or(now) + self.config.server.drain_timeout();
        let deadline = deadline.max(now + POOLS_DRAIN_MIN);
        let empty = drain(handles, deadline).await;
        let cut_connections = drained
            .as_ref()
            .map_or(0, |drained| drained.cut_connections);
        tracing::info!(cut_connections, empty, "drained");
        upkeep.abort();
        admin.abort();
        if let Some(flush) = flush {
            flush.abort();
        }
        let parts = (
            self.policies,
            self.shadows,
            self.preparers,
            self.reloads,
            self.pools,
        );
        if !end_within(STOP_LIMIT, parts).await {
            tracing::error!("threads that do not end are left behind");
        }
        drained?;
        failed.map_or(Ok(()), Err)
    }
}

// === impl Listeners ===

impl Listeners {
    /// Opens the sockets. A client that connects before the server has started waits.
    ///
    /// # Errors
    /// An address cannot be listened on; names the field.
    pub async fn bind(server: &ServerConfig) -> Result<Self, StartError> {
        Ok(Self {
            http: bind("http", server.http).await?,
            admin: bind("admin", server.admin).await?,
        })
    }

    /// The address of the protocol.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub fn http_addr(&self) -> io::Result<SocketAddr> {
        self.http.local_addr()
    }

    /// The address of metrics and status.
    ///
    /// # Errors
    /// The system does not tell the address.
    pub fn admin_addr(&self) -> io::Result<SocketAddr> {
        self.admin.local_addr()
    }
}

fn loader(engine: &PolicyEngine, config: &Config, pool: &PoolConfig) -> Loader {
    let options = LoaderOptions {
        cache_dir: config.policies.cache.clone(),
        limits: pool.limits(),
        seed: pool.seed,
    };
    Loader::new(engine.clone(), options)
}

/// Runs the pool's prepare command, if it is configured.
fn preparer(
    config: &Config,
    plan: &PoolPlan,
    pool: &Pool,
    profile: &Path,
    registry: &Registry,
) -> Result<Option<Preparer>, StartError> {
    let Some(prepare) = &plan.config.prepare else {
        return Ok(None);
    };
    let policy = plan.config.policy_file(&config.policies.dir);
    let zoo_of = |app: &ZooApp| app.dir.parent().unwrap_or(&app.dir).to_path_buf();
    let parts = PreparerParts {
        pool: Arc::clone(pool.handle()),
        zoos: plan.apps().iter().map(zoo_of).collect(),
        config: prepare.clone(),
        artifacts: policy.with_extension(""),
        profile: profile.to_path_buf(),
        registry: registry.clone(),
    };
    let started = Preparer::start(parts).map_err(|error| StartError::Prepare {
        pool: plan.config.name.clone(),
        error,
    })?;
    Ok(Some(started))
}

/// Starts the pool's shadow, if it is configured.
fn shadow(
    engine: &PolicyEngine,
    config: &Config,
    plan: &PoolPlan,
    pool: &Pool,
    registry: &Registry,
) -> Result<Option<Shadow>, StartError> {
    let Some(shadow) = &plan.config.shadow else {
        return Ok(None);
    };
    let parts = ShadowParts {
        pool: Arc::clone(pool.handle()),
        file: shadow.policy_file(&config.policies.dir),
        settings: shadow.settings.clone(),
        loader: loader(engine, config, &plan.config),
        registry: registry.clone(),
    };
    let started = Shadow::start(parts).map_err(|error| StartError::Shadow {
        pool: plan.config.name.clone(),
        error,
    })?;
    Ok(Some(started))
}

/// The end of a message about an address that cannot be listened on.
fn way_out(field: &str, kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::AddrInUse => {
            format!("; stop the program that listens there, or choose another port with --{field}")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("; choose an address of this machine with --{field}, such as 127.0.0.1:0")
        }
        io::ErrorKind::PermissionDenied => {
            format!("; choose a port from 1024 on with --{field}")
        }
        _ => String::new(),
    }
}

/// Connections that the kernel keeps until they are accepted; it resets further ones.
const BACKLOG: u32 = 4_096;

async fn bind(field: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    listen(address).map_err(|error| StartError::Listen {
        field,
        address,
        error,
    })
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The steps of `TcpListener::bind`, with a longer backlog.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Tells the pools that no more requests come: connections end once their requests have, and lanes
/// that wait for more requests would hold theirs.
async fn flush_after(delay: Duration, pools: Vec<Arc<PoolHandle>>) {
    tokio::time::sleep(delay).await;
    for pool in pools {
        let (done, _) = oneshot::channel();
        let _ = tokio::task::spawn_blocking(move || pool.send(Message::Drain(done))).await;
    }
}

/// Drains all pools. `false`: one was not empty at the deadline.
async fn drain(pools: Vec<Arc<PoolHandle>>, deadline: Instant) -> bool {
    let mut waits = Vec::new();
    for pool in pools {
        let (done, drained) = oneshot::channel();
        let sent = tokio::task::spawn_blocking(move || pool.send(Message::Drain(done)));
        waits.push(async move { sent.await.is_ok() && drained.await.is_ok() });
    }
    let all = async {
        let mut empty = true;
        for wait in waits {
            empty &= wait.await;
        }
        empty
    };
    tokio::time::timeout_at(deadline.into(), all)
        .await
        .unwrap_or(false)
}
