//! The pools that serve now, and the step from some pools to others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::oneshot;

use super::running::{PoolStarter, RunningPool};
use crate::admin::AdminPools;
use crate::backend::{Additions, OutputsError, PoolBackend};
use crate::clock::Clock;
use crate::config::{Config, ServerConfig};
use crate::driver::{Message, PoolHandle};
use crate::ingress::{Backends, Replaced};
use crate::telemetry::Registry;

/// How often requests that hold a replaced pool are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Pools and the ports that lead to them.
pub(super) struct ServingPools {
    starter: PoolStarter,
    backends: Arc<Backends<PoolBackend>>,
    admin: AdminPools,
    additions: Additions,
    state: Mutex<State>,
}

struct State {
    /// As it was read.
    config: Config,
    /// As this process can serve it.
    server: ServerConfig,
    pools: Vec<Arc<RunningPool>>,
}

/// Pools that get no new requests.
pub(super) struct Retired {
    backend: Replaced<PoolBackend>,
    pools: Vec<Arc<RunningPool>>,
    drain_timeout: Duration,
}

// === impl ServingPools ===

impl ServingPools {
    /// Begins with these pools. `adapted` is the configuration as this process can serve it.
    ///
    /// # Errors
    /// A card names outputs that the server does not make.
    pub(super) fn try_new(
        starter: PoolStarter,
        adapted: &Config,
        config: Config,
        pools: Vec<Arc<RunningPool>>,
        additions: Additions,
    ) -> Result<Self, OutputsError> {
        let server = adapted.server.clone();
        let backend = backend(&pools, &server, &starter, &additions)?;
        Ok(Self {
            backends: Arc::new(Backends::new(Arc::new(backend), server.limits())),
            admin: Arc::new(ArcSwap::from_pointee(
                pools.iter().map(|p| p.admin()).collect(),
            )),
            starter,
            additions,
            state: Mutex::new(State {
                config,
                server,
                pools,
            }),
        })
    }

    pub(super) fn starter(&self) -> &PoolStarter {
        &self.starter
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.starter.registry
    }

    pub(super) fn clock(&self) -> Clock {
        self.starter.clock
    }

    pub(super) fn backends(&self) -> &Arc<Backends<PoolBackend>> {
        &self.backends
    }

    pub(super) fn admin(&self) -> &AdminPools {
        &self.admin
    }

    /// The configuration that is served.
    pub(super) fn config(&self) -> Config {
        self.lock().config.clone()
    }

    /// `[server]` of a configuration as this process can serve it: its connections are as at the start.
    pub(super) fn server_of(&self, config: &Config) -> ServerConfig {
        ServerConfig {
            connections_max: self.lock().server.connections_max,
            ..config.server.clone()
        }
    }

    /// How long the end waits for requests.
    pub(super) fn drain_timeout(&self) -> Duration {
        self.lock().server.drain_timeout()
    }

    /// How long requests are served after readiness has fallen.
    pub(super) fn drain_delay(&self) -> Duration {
        self.lock().server.limits().drain_delay
    }

    pub(super) fn all(&self) -> Vec<Arc<RunningPool>> {
        self.lock().pools.clone()
    }

    pub(super) fn handles(&self) -> Vec<Arc<PoolHandle>> {
        let pools = self.all();
        pools.iter().map(|p| Arc::clone(p.handle())).collect()
    }

    /// Serves these pools from now on. Those among them that do not serve yet are ready.
    ///
    /// # Errors
    /// A card names outputs that the server does not make; then all is as before.
    pub(super) fn take_over(
        &self,
        config: Config,
        pools: Vec<Arc<RunningPool>>,
    ) -> Result<Retired, OutputsError> {
        let server = self.server_of(&config);
        let backend = backend(&pools, &server, &self.starter, &self.additions)?;
        let before = self.all();
        let is_among = |pool: &Arc<RunningPool>, others: &[Arc<RunningPool>]| {
            others.iter().any(|other| Arc::ptr_eq(pool, other))
        };
        let retired: Vec<_> = before
            .iter()
            .filter(|pool| !is_among(pool, &pools))
            .cloned()
            .collect();
        let fresh = pools.iter().filter(|pool| !is_among(pool, &before));
        retired.iter().for_each(|pool| pool.end_recording());
        for pool in fresh.clone() {
            if let Err(error) = pool.record(self.registry()) {
                tracing::error!(%error, "no recording; serving goes on");
            }
            let name = pool.handle().name();
            if let Some(earlier) = retired.iter().find(|p| p.handle().name() == name) {
                pool.unload_as(earlier);
            }
        }
        self.registry().change();
        let replaced = self.backends.replace(Arc::new(backend), server.limits());
        self.admin
            .store(Arc::new(pools.iter().map(|pool| pool.admin()).collect()));
        retired.iter().for_each(|pool| pool.end_preparing());
        for pool in fresh {
            if let Err(error) = pool.prepare(self.registry()) {
                tracing::error!(%error, "no artifacts are prepared; serving goes on");
            }
        }
        let drain_timeout = server.drain_timeout();
        *self.lock() = State {
            config,
            server,
            pools,
        };
        Ok(Retired {
            backend: replaced,
            pools: retired,
            drain_timeout,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole at every point where a panic could strike.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Retired ===

impl Retired {
    /// Waits for the requests inside, at most for the drain timeout, and ends the pools.
    pub(super) fn end(self) {
        let deadline = Instant::now() + self.drain_timeout;
        let in_time = || Instant::now() < deadline;
        while self.backend.is_in_use() && in_time() {
            std::thread::sleep(LOOK_EVERY);
        }
        for pool in &self.pools {
            let (done, mut drained) = oneshot::channel();
            pool.handle().send(Message::Drain(done));
            while matches!(drained.try_recv(), Err(oneshot::error::TryRecvError::Empty))
                && in_time()
            {
                std::thread::sleep(LOOK_EVERY);
            }
        }
    }
}

fn backend(
    pools: &[Arc<RunningPool>],
    server: &ServerConfig,
    starter: &PoolStarter,
    additions: &Additions,
) -> Result<PoolBackend, OutputsError> {
    let served = pools
        .iter()
        .map(|pool| (Arc::clone(pool.handle()), pool.plan().tensors.clone()));
    let served: Vec<_> = served.collect();
    let backend = PoolBackend::try_new(&served, server, &starter.registry, additions.clone())?;
    Ok(backend.behind(starter.fence.clone()))
}
