//! The servers behind one name: each of them is a worker for as long as it is listed.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use crate::address::RemoteAddress;
use crate::executor::RemoteExecutor;
use crate::follow::{FleetState, Offer, follow, try_server};
use crate::link::Link;
use crate::members::Members;
use crate::options::{ConnectError, FleetOptions, RemoteOptions};
use crate::runtime::RemoteRuntime;

/// Longest wait for the first server, for measuring.
const FIRST_LIMIT: Duration = Duration::from_secs(10);

/// Pause before the servers are tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The servers of a name. Dropping it ends the look-ups; connections end with their executors.
pub struct Fleet {
    state: Arc<FleetState>,
    following: Option<AbortHandle>,
    runtime: Arc<RemoteRuntime>,
}

/// A slot of a fleet: it has one server at a time.
#[derive(Clone)]
pub struct FleetSlot {
    fleet: Arc<Fleet>,
    at: usize,
}

// === impl Fleet ===

impl Fleet {
    /// Looks the name up from now on.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(options: FleetOptions) -> Result<Arc<Self>, ConnectError> {
        let runtime = shared_runtime()?;
        let state = Arc::new(FleetState::new(options));
        Ok(Arc::new(Self {
            following: runtime.spawn(follow(Arc::clone(&state))),
            state,
            runtime,
        }))
    }

    /// A connection to the first of the name's servers that is ready, for measuring. Waits a while for the
    /// first one: schedulers, workers and etcd may start together.
    ///
    /// # Errors
    /// After that wait the name is not resolved, or none of its servers is ready: the reason of the last one. At
    /// once if one is not fit.
    pub fn first_ready(options: &FleetOptions) -> Result<RemoteExecutor, ConnectError> {
        let name = &options.server.address;
        let away = |reason: String| ConnectError::Away(format!("{name}: {reason}"));
        let give_up = Instant::now() + FIRST_LIMIT;
        loop {
            // Also a list that cannot be had: etcd may start at the same time.
            let mut last = away("no worker is listed".to_owned());
            match look_up(options)? {
                Err(reason) => last = away(reason),
                Ok(members) => {
                    for member in members.into_values() {
                        match RemoteExecutor::connect(options.server.at(member.address)) {
                            Ok(executor) => return Ok(executor),
                            Err(error) => last = error,
                        }
                    }
                }
            }
            if !matches!(last, ConnectError::Away(_)) || Instant::now() >= give_up {
                return Err(last);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// The slot of this number.
    pub fn slot(self: &Arc<Self>, at: usize) -> FleetSlot {
        FleetSlot {
            fleet: Arc::clone(self),
            at,
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if let Some(following) = &self.following {
            following.abort();
        }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fleet").field(&self.state.options).finish()
    }
}

fn look_up(options: &FleetOptions) -> Result<Result<Members, String>, ConnectError> {
    let asked = options.clone();
    let found = shared_runtime()?.wait(async move { asked.look_up().await });
    Ok(found.unwrap_or_else(|| Err("the look-up panicked".to_owned())))
}

fn shared_runtime() -> Result<Arc<RemoteRuntime>, ConnectError> {
    let no_thread = |error| ConnectError::Away(format!("no thread for connections: {error}"));
    RemoteRuntime::shared().map_err(no_thread)
}

// === impl FleetSlot ===

impl FleetSlot {
    /// How a server of the slot is used.
    pub fn options(&self) -> &RemoteOptions {
        &self.fleet.state.options.server
    }

    /// The address of its server; none while the slot is free, or its server leaves.
    pub fn address(&self) -> Option<RemoteAddress> {
        self.fleet.state.address(self.at)
    }

    /// Waits until the name was looked up once and each of its servers was tried once, for five seconds
    /// at most. Only the first wait of a fleet takes time.
    pub fn settle(&self) {
        self.fleet.state.settle();
    }

    /// The executor on a connection that is open by now. Otherwise one is opened in the background: ask
    /// again.
    ///
    /// # Errors
    /// The slot is free, or its server is not connected: the reason of the last attempt.
    pub fn connect(&self) -> Result<RemoteExecutor, ConnectError> {
        let Self { fleet, at } = self;
        match fleet.state.take(*at)? {
            Offer::Open {
                address,
                lease,
                channel,
            } => {
                let options = self.options().at(address);
                let runtime = Arc::clone(&fleet.runtime);
                let link = Link::on(options.clone(), channel, lease, runtime);
                Ok(RemoteExecutor::on(options, link))
            }
            Offer::Try {
                address,
                lease,
                reason,
            } => {
                let trying = try_server(Arc::clone(&fleet.state), *at, address, lease);
                // The next call sees its end.
                let _ = fleet.runtime.spawn(trying);
                Err(reason)
            }
        }
    }
}

impl fmt::Debug for FleetSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FleetSlot").field(&self.at).finish()
    }
}
