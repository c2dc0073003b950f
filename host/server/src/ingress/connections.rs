//! Which connections end for others that wait, and which end because they are too slow.
//!
//! Each served connection holds a permit of a semaphore. A kept-alive connection keeps its permit
//! between requests as long as no connection waits for one. While one waits, permits come back: the
//! next answer closes its connection ([`PermitWanted`]), and at every [`CONTENDED_INTERVAL`] the
//! acceptor ends some connections. The slow ones go first: half a head, a body or an answer at less
//! than the least rate. Without slow ones the longest idle connection goes.
//!
//! The acceptor looks at the progress of all connections at intervals instead of each connection
//! having timers of its own, so that a request costs a few stores and no timer. Each connection has
//! a `Notify` of its own: hyper's future is polled together with it at every request, and a channel
//! that all connections share would be a lock that all requests share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::{AbortHandle, Id};

use super::clients::ClientAddress;
use super::connection_state::{ConnectionState, Phase, Progress};
use super::limits::Limits;

/// How often the acceptor looks at the connections while another one waits.
pub(super) const CONTENDED_INTERVAL: Duration = Duration::from_millis(50);

/// How often it looks otherwise.
pub(super) const QUIET_INTERVAL: Duration = Duration::from_millis(500);

/// An idle connection has had no exchange for this long.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// The same before its first request: clients repeat a request on a connection that was answered
/// before, but not the first one.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// How long a head, a body or an answer may be slow while another connection waits.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// How long the answer to a client that has closed its side is computed. TCP does not tell such a
/// client from one that has gone.
const HALF_CLOSED_GRACE: Duration = Duration::from_secs(1);

/// The same while another connection waits.
const HALF_CLOSED_CONTENDED: Duration = Duration::from_millis(100);

/// Slow connections that end at one look: this fraction of all permits, so that those of a client
/// that takes all of them come back within seconds.
const SLOW_FRACTION: usize = 64;

/// Whether a connection waits for a permit, and no other connection ends for it yet. Every answer
/// reads it, with one relaxed load if none waits.
#[derive(Debug, Default)]
pub(super) struct PermitWanted(AtomicBool);

/// How long each phase may be slow.
#[derive(Clone, Copy, Debug)]
struct Patience {
    head: Duration,
    /// `None`: the reader of the body has a limit of its own.
    body: Option<Duration>,
    write: Duration,
    half_closed: Duration,
    /// Between the calls of HTTP/2; HTTP/1 has a timer of its own for it.
    between_calls: Duration,
    /// Idle, although the connection was asked to end.
    asked: Option<Duration>,
}

/// All served connections, by the task that serves them.
#[derive(Debug)]
pub(super) struct ServedConnections {
    by_task: HashMap<Id, ServedConnection>,
    accepted: u64,
    quiet: Patience,
    contended: Patience,
    /// Bytes per second.
    min_rate: u64,
    slow_per_look: usize,
}

#[derive(Debug)]
struct ServedConnection {
    state: Arc<ConnectionState>,
    client: ClientAddress,
    task: AbortHandle,
    /// In the order of acceptance; of two connections that are equally slow the older one ends.
    number: u64,
    /// At the first look that saw the present phase.
    began: Progress,
    since: Instant,
    /// Bytes that the phase has moved since then.
    moved: u64,
    /// Whether calls are open between their messages.
    has_streams: bool,
    /// When the connection was asked to end.
    asked: Option<Instant>,
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
    pub(super) fn new(limits: &Limits) -> Self {
        let quiet = Patience {
            head: limits.head_timeout,
            body: None,
            write: limits.write_timeout,
            half_closed: HALF_CLOSED_GRACE,
            between_calls: limits.header_read_timeout,
            asked: None,
        };
        Self {
            by_task: HashMap::new(),
            accepted: 0,
            quiet,
            contended: Patience {
                head: quiet.head.min(SLOW_AFTER),
                body: Some(SLOW_AFTER),
                write: quiet.write.min(SLOW_AFTER),
                half_closed: HALF_CLOSED_CONTENDED,
                between_calls: quiet.between_calls,
                asked: Some(SLOW_AFTER),
            },
            min_rate: limits.min_rate,
            slow_per_look: limits.max_connections.div_ceil(SLOW_FRACTION),
        }
    }

    pub(super) fn insert(
        &mut self,
        task: AbortHandle,
        client: ClientAddress,
        state: Arc<ConnectionState>,
    ) {
        self.accepted += 1;
        let served = ServedConnection {
            began: state.progress(),
            state,
            client,
            number: self.accepted,
            since: Instant::now(),
            moved: 0,
            has_streams: false,
            asked: None,
            task,
        };
        self.by_task.insert(served.task.id(), served);
    }

    /// The client of a connection that has ended.
    pub(super) fn remove(&mut self, task: Id) -> Option<ClientAddress> {
        self.by_task.remove(&task).map(|served| served.client)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_task.is_empty()
    }

    /// Ends the connections that are too slow.
    pub(super) fn end_slow(&mut self, now: Instant) {
        Self::cut_slow(&mut self.by_task, now, &self.quiet, self.min_rate);
    }

    /// Ends the connections that would be too slow while others wait, and keeps clients that have
    /// closed their side as long as otherwise. The rate is the present one: a client that stops
    /// must not hold the drain, however much it moved before.
    pub(super) fn end_slow_in_drain(&mut self, now: Instant) {
        let patience = Patience {
            half_closed: self.quiet.half_closed,
            ..self.contended
        };
        Self::cut_slow(&mut self.by_task, now, &patience, self.min_rate);
        for served in self.by_task.values_mut() {
            served.measure_rate_anew(now);
        }
    }

    fn cut_slow(
        by_task: &mut HashMap<Id, ServedConnection>,
        now: Instant,
        patience: &Patience,
        min_rate: u64,
    ) {
        for served in by_task.values_mut() {
            served.look(now);
            if served.is_slow(now, patience, min_rate) {
                served.cut();
            } else if served.is_unused(now, patience) {
                served.ask_to_end(now);
            }
        }
    }

    /// Ends some connections for others that wait.
    pub(super) fn end_some(&mut self, now: Instant) {
        let mut slow = Vec::new();
        let mut longest_idle: Option<&mut ServedConnection> = None;
        for served in self.by_task.values_mut() {
            served.look(now);
            if served.is_slow(now, &self.contended, self.min_rate) {
                slow.push(served);
            } else if served.is_idle(now)
                && longest_idle
                    .as_ref()
                    .is_none_or(|other| served.age() < other.age())
            {
                longest_idle = Some(served);
            }
        }
        if slow.is_empty() {
            if let Some(served) = longest_idle {
                served.ask_to_end(now);
            }
            return;
        }
        slow.sort_unstable_by_key(|served| served.age());
        for served in slow.into_iter().take(self.slow_per_look) {
            served.cut();
        }
    }

    /// Asks every connection to end.
    pub(super) fn end_all(&mut self, now: Instant) {
        for served in self.by_task.values_mut() {
            served.ask_to_end(now);
        }
    }
}

// === impl ServedConnection ===

impl ServedConnection {
    fn look(&mut self, now: Instant) {
        let seen = self.state.progress();
        if (seen.phase, seen.edges) != (self.began.phase, self.began.edges) {
            self.began = seen;
            self.since = now;
        }
        self.moved = seen.bytes.wrapping_sub(self.began.bytes);
        self.has_streams = seen.has_streams;
    }

    /// Sorts the longest and then the oldest first.
    fn age(&self) -> (Instant, u64) {
        (self.since, self.number)
    }

    fn is_idle(&self, now: Instant) -> bool {
        let enough = if self.began.edges == 0 {
            SILENT_AFTER
        } else {
            IDLE_AFTER
        };
        self.asked.is_none()
            && self.began.phase == Phase::Idle
            && now.duration_since(self.since) >= enough
    }

    /// Whether a connection of HTTP/2 has had no call for so long that it ends, as one of HTTP/1 would.
    /// Clients open another one for their next call.
    fn is_unused(&self, now: Instant, patience: &Patience) -> bool {
        self.state.is_multiplexed()
            && self.asked.is_none()
            && self.began.phase == Phase::Idle
            && !self.has_streams
            && now.duration_since(self.since) >= patience.between_calls
    }

    fn is_slow(&self, now: Instant, patience: &Patience, min_rate: u64) -> bool {
        let elapsed = now.duration_since(self.since);
        // Also at a least rate of 0 a connection that moves no byte is slow.
        let below_rate = || self.moved as f64 <= min_rate as f64 * elapsed.as_secs_f64();
        match self.began.phase {
            Phase::Serving => false,
            Phase::Idle => self.stays_idle(now, patience),
            Phase::Head => elapsed >= patience.head,
            Phase::HalfClosed => elapsed >= patience.half_closed,
            Phase::Writing => elapsed >= patience.write && below_rate(),
            Phase::Body => patience.body.is_some_and(|body| elapsed >= body) && below_rate(),
        }
    }

    /// Whether an idle connection is still open long after it was asked to end. A client of HTTP/2
    /// that does not answer the question holds its connection.
    fn stays_idle(&self, now: Instant, patience: &Patience) -> bool {
        let of_http2 = self.state.is_multiplexed().then_some(patience.head);
        let (Some(asked), Some(patience)) = (self.asked, patience.asked.or(of_http2)) else {
            return false;
        };
        // Between two writes of an answer the phase is idle for a moment.
        now.duration_since(asked.max(self.since)) >= patience
    }

    /// Counts the bytes of an answer or a body from now on, if it has been measured for long enough.
    fn measure_rate_anew(&mut self, now: Instant) {
        let has_rate = matches!(self.began.phase, Phase::Writing | Phase::Body);
        if has_rate && now.duration_since(self.since) >= SLOW_AFTER {
            self.since = now;
            self.began.bytes = self.began.bytes.wrapping_add(self.moved);
            self.moved = 0;
        }
    }

    fn ask_to_end(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
        self.state.ask_to_end();
    }

    /// Drops the connection's future, and with it the call that it waits for.
    fn cut(&self) {
        tracing::debug!(
            client = %self.state.peer,
            phase = ?self.began.phase,
            "a slow connection was cut"
        );
        self.task.abort();
    }
}
