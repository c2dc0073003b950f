//! A whole server: pools, policies, listeners, and the shutdown.
//! - `running`: one pool and its threads; `serving`: the pools that serve now
//! - `changes`: follows the configuration while serving
//! - `worker`: one worker without a scheduler
//! - `listeners`, `drain`, `error`: sockets, the end of the requests inside, refusals
//! - `fenced`: no batch begins while another scheduler is active; `standing`: the election, and whether etcd
//!   answers

mod changes;
mod drain;
mod error;
mod fenced;
mod listeners;
mod running;
mod serving;
mod standing;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};

pub use self::changes::ConfigSource;
use self::changes::{ConfigFollower, FilesAtStart};
use self::drain::{drain, flush_after};
pub use self::error::{ServeError, StartError};
pub use self::listeners::Listeners;
use self::running::PoolStarter;
use self::serving::ServingPools;
pub use self::worker::{WorkerListeners, WorkerServer};
use crate::admin::{self, Admin};
use crate::assembly::{Measured, PoolPlan};
use crate::backend::{AddApp, Additions};
use crate::config::Config;
use crate::descriptors;
use crate::ingress;
use crate::policies::PoliciesHandle;
use crate::shutdown::{Cancel, driver_failure, end_within};

/// Time from the failure of a driver to the end of the process: clients of other pools get their
/// answers, and load balancers see that this server is not alive.
pub const FAILURE_GRACE: Duration = Duration::from_secs(10);

/// Time for the pools to drop the requests of connections that were cut at the drain timeout.
const POOLS_DRAIN_MIN: Duration = Duration::from_millis(250);

/// Most time that the end of all threads may take, after the drain. Together with the rest of a stop
/// it stays below two seconds.
const STOP_LIMIT: Duration = Duration::from_millis(1_500);

/// Apps that clients may ask for at a time; further clients wait.
const ASKED_MAX: usize = 16;

/// A server before it serves.
pub struct Server {
    // Dropped in this order: the thread that changes the pools, then the pools.
    follower: Option<ConfigFollower>,
    /// The apps that clients ask for, until they are followed.
    asked: Option<Receiver<AddApp>>,
    pools: Arc<ServingPools>,
    config: Config,
    files: FilesAtStart,
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
    pub fn start_unless(config: Config, cancel: &Cancel) -> Result<Self, StartError> {
        // Before the cards are read: a change from here on is taken in once the files are followed.
        let files = FilesAtStart::of(&config);
        let mut adapted = config.clone();
        // First, because models and policies open files too.
        adapted.server.connections_max = descriptors::prepare(config.server.connections_max);
        let plans = PoolPlan::all(&adapted)?;
        let measured = Measured::obtain_unless(&adapted, &plans, cancel)?;
        let starter = PoolStarter::try_new(&adapted)?;
        let mut pools = Vec::new();
        for plan in plans {
            let pool = starter.start(&adapted, plan, &measured, None)?;
            pool.record(&starter.registry)?;
            pool.prepare(&starter.registry)?;
            pools.push(Arc::new(pool));
        }
        let (asks, asked) = bounded(ASKED_MAX);
        let additions = Additions::to(asks);
        let pools = ServingPools::try_new(starter, &adapted, config, pools, additions)?;
        Ok(Self {
            follower: None,
            asked: Some(asked),
            pools: Arc::new(pools),
            config: adapted,
            files,
        })
    }

    /// Takes changes of the configuration in while it serves: apps, workers and pools, and apps of its
    /// zoos that clients load. Without it only a restart does. A server follows one source.
    pub fn follow(&mut self, source: ConfigSource) {
        if let Some(asked) = self.asked.take() {
            let pools = Arc::clone(&self.pools);
            self.follower = ConfigFollower::start(pools, source, asked, &self.files);
        }
    }

    /// Waits until the policy of each pool has been tried once.
    ///
    /// # Errors
    /// A pool has no policy that serves, and the configuration requires one.
    pub fn require_policies(&self, cancel: &Cancel) -> Result<(), StartError> {
        if !self.config.requires_policies() {
            return Ok(());
        }
        let bundled = self.config.bundled_policies.as_deref();
        for pool in self.pools.all() {
            pool.require_policy(bundled, cancel)?;
        }
        Ok(())
    }

    /// The handles that swap the pools' policies from inside the process.
    pub fn policies(&self) -> Vec<PoliciesHandle> {
        let pools = self.pools.all();
        pools.iter().map(|pool| pool.policies().clone()).collect()
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
        let Self {
            mut follower,
            asked,
            pools,
            config,
            ..
        } = self;
        // Without a follower nothing answers: clients learn it at once.
        drop(asked);
        let admin = Admin::new(
            Arc::clone(pools.admin()),
            pools.registry().clone(),
            pools.clock(),
        )
        .with_operators(config.server.operators.clone())
        .with_names(config.server.admin_hosts.clone(), listeners.admin_tls);
        let admin = tokio::spawn(admin::serve(listeners.admin, admin));
        let etcd_gauge = standing::show_etcd(&config.etcd, pools.registry());
        let mut election = standing::elect(&config, &pools);
        let failed_pool = || {
            let pools = pools.all();
            let failed = pools.iter().find(|pool| pool.handle().has_failed());
            failed.map(|pool| pool.handle().name().to_owned())
        };
        let (mut failed, mut stopped_at) = (None, None);
        let mut flush = None;
        let stop = async {
            tokio::select! {
                () = shutdown => {}
                pool = driver_failure(failed_pool, FAILURE_GRACE) => {
                    failed = Some(ServeError::Driver { pool });
                }
            }
            stopped_at = Some(Instant::now());
            // The pools are the last ones from here on.
            if let Some(follower) = &mut follower {
                follower.stop();
            }
            let delay = pools.drain_delay();
            flush = Some(tokio::spawn(flush_after(delay, pools.handles())));
        };
        let drained = ingress::serve(listeners.ports, Arc::clone(pools.backends()), stop).await;
        let now = Instant::now();
        let deadline = stopped_at.unwrap_or(now) + pools.drain_timeout();
        let deadline = deadline.max(now + POOLS_DRAIN_MIN);
        let empty = drain(pools.handles(), deadline).await;
        let cut_connections = drained
            .as_ref()
            .map_or(0, |drained| drained.cut_connections);
        tracing::info!(cut_connections, empty, "drained");
        // After the last answer: then another scheduler is active.
        if let Some(standing) = election.take() {
            standing.end().await;
        }
        admin.abort();
        // Its socket is removed once the task has ended. An error: it was aborted.
        let _ = admin.await;
        for task in [flush, etcd_gauge].into_iter().flatten() {
            task.abort();
        }
        if !end_within(STOP_LIMIT, (follower, pools)).await {
            tracing::error!("threads that do not end are left behind");
        }
        drained?;
        failed.map_or(Ok(()), Err)
    }
}
