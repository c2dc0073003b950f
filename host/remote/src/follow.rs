//! Follows the servers of a fleet: a server that is listed gets a free slot and is connected, one that is
//! listed no longer takes no more batches, and its slot is free once those on the way have ended.
//!
//! Connections are opened here and not on the thread that starts workers: an address without a server
//! takes the whole timeout.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::address::RemoteAddress;
use crate::channel::Channel;
use crate::lease::Lease;
use crate::members::Members;
use crate::opening::open;
use crate::options::{ConnectError, FleetOptions};
use crate::slots::{SlotChange, Slots};

/// Pause before a look at whether servers that leave have ended their batches. Their workers are down by
/// then, before another server has the slot.
const DRAIN_LOOK_EVERY: Duration = Duration::from_millis(250);

/// Longest wait at the start for the first look-up and the first connections.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The slots of a fleet, shared by the task that follows it and the workers' starts.
pub(crate) struct FleetState {
    pub(crate) options: FleetOptions,
    held: Mutex<HeldSlots>,
    /// The servers were given their slots, or an attempt to connect has ended.
    tried: Condvar,
}

struct HeldSlots {
    slots: Slots,
    /// By slot; none in a free one.
    servers: Vec<Option<FleetServer>>,
    /// The servers of the last look-up that did not fail.
    listed: Members,
    /// A look-up has ended, and its servers have their slots.
    was_looked_up: bool,
    /// The start has waited for the first connections.
    is_settled: bool,
    /// Why the last look-up failed; empty: it did not.
    failure: String,
    /// Servers without a slot.
    left_out: usize,
}

/// The server in a slot.
struct FleetServer {
    address: RemoteAddress,
    lease: Arc<Lease>,
    attempt: Attempt,
    /// Why the last attempt failed.
    failure: Option<ConnectError>,
}

/// A connection for the next start of the slot's worker.
enum Attempt {
    None,
    Running,
    Connected(Channel),
}

/// The answer to a worker's start.
pub(crate) enum Offer {
    /// A connection.
    Open {
        address: RemoteAddress,
        lease: Arc<Lease>,
        channel: Channel,
    },
    /// None is open: connect with [`try_server`].
    Try {
        address: RemoteAddress,
        lease: Arc<Lease>,
        reason: ConnectError,
    },
}

// === impl FleetState ===

impl FleetState {
    pub(crate) fn new(options: FleetOptions) -> Self {
        let held = HeldSlots {
            slots: Slots::new(options.at_most),
            servers: (0..options.at_most).map(|_| None).collect(),
            listed: Members::new(),
            was_looked_up: false,
            is_settled: false,
            failure: String::new(),
            left_out: 0,
        };
        Self {
            options,
            held: Mutex::new(held),
            tried: Condvar::new(),
        }
    }

    pub(crate) fn address(&self, at: usize) -> Option<RemoteAddress> {
        let held = self.lock();
        let server = held.servers.get(at)?.as_ref();
        let server = server.filter(|server| !server.lease.is_ended())?;
        Some(server.address.clone())
    }

    /// Waits until the name was looked up once and each of its servers was tried once.
    pub(crate) fn settle(&self) {
        let waits = |held: &mut HeldSlots| !held.is_settled && !held.were_tried();
        let waited = self
            .tried
            .wait_timeout_while(self.lock(), SETTLE_TIMEOUT, waits);
        let (mut held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        held.is_settled = true;
    }

    /// The connection of a slot's server.
    ///
    /// # Errors
    /// The slot is free or its server leaves, or an attempt to connect is under way.
    pub(crate) fn take(&self, at: usize) -> Result<Offer, ConnectError> {
        let mut held = self.lock();
        let server = held.servers.get_mut(at).and_then(Option::as_mut);
        let server = server.filter(|server| !server.lease.is_ended());
        let server = server.ok_or_else(|| {
            let name = &self.options.server.address;
            ConnectError::Away(format!("{name}: lists no server for this slot"))
        })?;
        let (address, lease) = (server.address.clone(), Arc::clone(&server.lease));
        let connecting = || ConnectError::Away(format!("{address}: is being connected"));
        let reason = server.failure.clone().unwrap_or_else(connecting);
        match std::mem::replace(&mut server.attempt, Attempt::Running) {
            Attempt::Connected(channel) if !channel.is_closed() => {
                server.attempt = Attempt::None;
                server.failure = None;
                Ok(Offer::Open {
                    address,
                    lease,
                    channel,
                })
            }
            Attempt::Running => Err(reason),
            Attempt::None | Attempt::Connected(_) => Ok(Offer::Try {
                address,
                lease,
                reason,
            }),
        }
    }

    /// Takes the end of a look-up in. A failed one keeps the last servers.
    fn looked_up(&self, found: Result<Members, String>) {
        let mut held = self.lock();
        match found {
            Ok(listed) => {
                held.listed = listed;
                held.failure.clear();
            }
            Err(reason) if held.failure != reason => {
                let (name, kept) = (&self.options.server.address, held.listed.len());
                tracing::warn!(%name, reason, kept, "workers not listed: the last ones stay");
                held.failure = reason;
            }
            Err(_) => {}
        }
    }

    /// Gives the listed servers their slots. Those to connect to.
    fn assign(&self) -> Vec<(usize, RemoteAddress, Arc<Lease>)> {
        let mut held = self.lock();
        let HeldSlots {
            slots,
            servers,
            listed,
            left_out,
            was_looked_up,
            ..
        } = &mut *held;
        let mut joined = Vec::new();
        for change in slots.list(listed) {
            match change {
                SlotChange::Leaves(at) => {
                    if let Some(server) = &servers[at] {
                        server.lease.end();
                    }
                }
                SlotChange::Joins(at, member) => {
                    let lease = Arc::<Lease>::default();
                    let address = member.address;
                    joined.push((at, address.clone(), Arc::clone(&lease)));
                    servers[at] = Some(FleetServer {
                        address,
                        lease,
                        attempt: Attempt::Running,
                        failure: None,
                    });
                }
            }
        }
        let without = listed.keys().filter(|name| slots.of(name).is_none());
        let without = without.count();
        if std::mem::replace(left_out, without) != without && without > 0 {
            let FleetOptions {
                server, at_most, ..
            } = &self.options;
            let name = &server.address;
            tracing::warn!(%name, at_most, without, "more workers than slots: raise `at_most`");
        }
        *was_looked_up = true;
        joined
    }

    /// Frees the slots whose servers leave and have ended their batches.
    fn drain(&self) {
        let mut held = self.lock();
        let HeldSlots { slots, servers, .. } = &mut *held;
        let leaving: Vec<_> = slots.leaving().collect();
        for at in leaving {
            let is_busy = |server: &FleetServer| server.lease.is_busy();
            if !servers[at].as_ref().is_some_and(is_busy) {
                slots.drained(at);
                servers[at] = None;
            }
        }
    }

    fn has_leaving(&self) -> bool {
        self.lock().slots.leaving().next().is_some()
    }

    /// An attempt to connect to the server of a slot has ended. One of an earlier lease is dropped.
    fn connected(&self, at: usize, lease: &Arc<Lease>, opened: Result<Channel, ConnectError>) {
        let mut held = self.lock();
        let server = held.servers.get_mut(at).and_then(Option::as_mut);
        let server = server.filter(|server| Arc::ptr_eq(&server.lease, lease));
        if let Some(server) = server {
            match opened {
                Ok(channel) => server.attempt = Attempt::Connected(channel),
                Err(error) => {
                    server.attempt = Attempt::None;
                    server.failure = Some(error);
                }
            }
        }
        drop(held);
        self.tried.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, HeldSlots> {
        // Whole at every point where a panic could strike.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl HeldSlots ===

impl HeldSlots {
    fn were_tried(&self) -> bool {
        let mut servers = self.servers.iter().flatten();
        self.was_looked_up && !servers.any(|server| matches!(server.attempt, Attempt::Running))
    }
}

/// Follows the fleet until it is aborted.
pub(crate) async fn follow(state: Arc<FleetState>) {
    let (tell, told) = mpsc::channel(1);
    let FleetOptions { server, source, .. } = &state.options;
    tokio::join!(source.follow(&server.address, tell), take_in(&state, told));
}

async fn take_in(state: &Arc<FleetState>, mut told: mpsc::Receiver<Result<Members, String>>) {
    let mut drain_at = None;
    loop {
        tokio::select! {
            () = sleep_until(drain_at.unwrap_or_else(Instant::now)), if drain_at.is_some() => {
                state.drain();
                drain_at = None;
            }
            found = told.recv() => match found {
                Some(found) => state.looked_up(found),
                None => return,
            }
        }
        for (at, address, lease) in state.assign() {
            tokio::spawn(try_server(Arc::clone(state), at, address, lease));
        }
        state.tried.notify_all();
        if drain_at.is_none() && state.has_leaving() {
            drain_at = Some(Instant::now() + DRAIN_LOOK_EVERY);
        }
    }
}

/// Connects to the server of a slot, for the worker's next start.
pub(crate) async fn try_server(
    state: Arc<FleetState>,
    at: usize,
    address: RemoteAddress,
    lease: Arc<Lease>,
) {
    let opened = open(&state.options.server.at(address)).await;
    state.connected(at, &lease, opened);
}
