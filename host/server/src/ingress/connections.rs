//! How many connections are served at once, and which of them end while another one waits.
//!
//! Each served connection holds a permit of a semaphore. A kept-alive connection keeps its permit
//! between requests as long as no connection waits for one. While one waits, permits come back one
//! at a time: the next answer closes its connection ([`PermitWanted`]), and at every
//! [`IDLE_CHECK_INTERVAL`] the longest idle connection is closed.
//!
//! The acceptor counts idle checks instead of each connection having an idle timer of its own, so
//! that a request costs two atomic increments and no timer. Each connection has a [`Notify`] of
//! its own: hyper's future is polled together with it at every request, and a channel that all
//! connections share would be a lock that all requests share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::Id;

/// How often one idle connection is closed while another connection waits.
pub(super) const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Checks without an exchange after which a connection is idle: an idle timeout of 100 ms.
const IDLE_CHECKS: u32 = 2;

/// The same before its first request, 1 s: clients repeat a request on a connection that was
/// answered before, but not the first one.
const SILENT_CHECKS: u32 = 20;

/// The state of a connection that its task and the acceptor share.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    /// Begins and ends of exchanges: odd during one.
    exchange_edges: AtomicU64,
    end: Notify,
}

/// Whether a connection waits for a permit, and no other connection ends for it yet. Every answer
/// reads it, with one relaxed load if none waits.
#[derive(Debug, Default)]
pub(super) struct PermitWanted(AtomicBool);

/// All served connections, by the task that serves them.
#[derive(Debug, Default)]
pub(super) struct ServedConnections {
    by_task: HashMap<Id, ServedConnection>,
    accepted: u64,
}

#[derive(Debug)]
struct ServedConnection {
    state: Arc<ConnectionState>,
    /// In the order of acceptance; of two connections that are equally idle the older one ends.
    number: u64,
    /// Edges at the last check.
    edges_seen: u64,
    /// Checks since then without an exchange.
    quiet_checks: u32,
    asked_to_end: bool,
}

// === impl ConnectionState ===

impl ConnectionState {
    /// The head of a request has been read.
    pub(super) fn begin_exchange(&self) {
        self.exchange_edges.fetch_add(1, Ordering::Relaxed);
    }

    /// Its answer is ready to be written.
    pub(super) fn end_exchange(&self) {
        self.exchange_edges.fetch_add(1, Ordering::Relaxed);
    }

    /// Completes when the connection is to end after its current exchange.
    pub(super) async fn asked_to_end(&self) {
        self.end.notified().await;
    }
}

// === impl PermitWanted ===

impl PermitWanted {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether this answer is to close its connection. True once per [`set`](Self::set): one
    /// waiting connection needs one permit.
    pub(super) fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

// === impl ServedConnections ===

impl ServedConnections {
    pub(super) fn insert(&mut self, task: Id, state: Arc<ConnectionState>) {
        self.accepted += 1;
        let served = ServedConnection {
            state,
            number: self.accepted,
            edges_seen: 0,
            quiet_checks: 0,
            asked_to_end: false,
        };
        self.by_task.insert(task, served);
    }

    pub(super) fn remove(&mut self, task: Id) {
        self.by_task.remove(&task);
    }

    /// Checks every connection, and asks the longest idle one to end.
    pub(super) fn end_one_idle(&mut self) {
        let mut longest: Option<&mut ServedConnection> = None;
        for served in self.by_task.values_mut() {
            if served.check_idle()
                && longest
                    .as_ref()
                    .is_none_or(|other| served.is_idle_longer_than(other))
            {
                longest = Some(served);
            }
        }
        if let Some(served) = longest {
            served.ask_to_end();
        }
    }

    /// Asks every connection to end.
    pub(super) fn end_all(&mut self) {
        self.by_task
            .values_mut()
            .for_each(ServedConnection::ask_to_end);
    }
}

// === impl ServedConnection ===

impl ServedConnection {
    /// Counts this check; whether the connection is idle and has not been asked to end yet.
    fn check_idle(&mut self) -> bool {
        let edges = self.state.exchange_edges.load(Ordering::Relaxed);
        let in_exchange = edges % 2 == 1;
        if in_exchange || edges != self.edges_seen {
            self.quiet_checks = 0;
        } else {
            self.quiet_checks = self.quiet_checks.saturating_add(1);
        }
        self.edges_seen = edges;
        let enough = if edges == 0 {
            SILENT_CHECKS
        } else {
            IDLE_CHECKS
        };
        !self.asked_to_end && self.quiet_checks >= enough
    }

    fn is_idle_longer_than(&self, other: &Self) -> bool {
        (self.quiet_checks, other.number) > (other.quiet_checks, self.number)
    }

    fn ask_to_end(&mut self) {
        self.asked_to_end = true;
        self.state.end.notify_one();
    }
}
