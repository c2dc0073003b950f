//! The progress of one connection, written by its task and read by the acceptor.
//!
//! Every field is an atomic, most with one writer, so that progress costs a request a few operations
//! on a cache line of its own. A connection of HTTP/1 has one exchange at a time; a connection of HTTP/2
//! has several, and exchanges that begin and end on other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::sockets::Peer;

/// The progress of one connection.
#[derive(Debug)]
pub(super) struct ConnectionState {
    /// The client.
    pub(super) peer: Peer,
    /// Whether it has several exchanges at a time: HTTP/2.
    multiplexed: AtomicBool,
    /// Begins and ends of exchanges.
    exchange_edges: AtomicU64,
    /// Exchanges that have begun and not ended.
    exchanges: AtomicUsize,
    /// Bodies of exchanges that are being read.
    bodies: AtomicUsize,
    /// Bodies outside of exchanges: messages of streams, and the rest of refused bodies.
    outside_bodies: AtomicUsize,
    /// Answers of HTTP/2 that the client has not taken yet.
    untaken: AtomicUsize,
    /// Calls of HTTP/2 that stay open between their messages.
    streams: AtomicUsize,
    /// Bytes that the client sent.
    read: AtomicU64,
    /// The same at the end of the last exchange or body: more bytes belong to the next head.
    read_before_head: AtomicU64,
    /// Bytes that the kernel took for the client.
    written: AtomicU64,
    /// The kernel's buffer is full: the client does not read.
    write_blocked: AtomicBool,
    /// The client has closed its side, which it may do before it reads its answer.
    half_closed: AtomicBool,
    end: Notify,
}

/// The activity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between two exchanges.
    Idle,
    /// A head has begun to arrive.
    Head,
    /// A body arrives.
    Body,
    /// The request is complete, its answer is not.
    Serving,
    /// The same, and the client has closed its side.
    HalfClosed,
    /// The client does not read its answer.
    Writing,
}

/// One look at a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) phase: Phase,
    /// Begins and ends of exchanges so far.
    pub(super) edges: u64,
    /// Bytes that the phase has moved, counted from the start of the connection.
    pub(super) bytes: u64,
    /// Whether calls are open between their messages.
    pub(super) has_streams: bool,
}

/// An exchange of HTTP/2, until it is dropped.
#[derive(Debug)]
pub(super) struct Exchanging(Arc<ConnectionState>);

/// A body that is read, until it is dropped: complete, or given up.
#[derive(Debug)]
pub(super) struct Reading<'a>(&'a ConnectionState);

/// Counts one thing of a connection until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    state: Arc<ConnectionState>,
    counter: fn(&ConnectionState) -> &AtomicUsize,
}

// === impl ConnectionState ===

impl ConnectionState {
    pub(super) fn new(peer: Peer, multiplexed: bool) -> Self {
        Self {
            peer,
            multiplexed: AtomicBool::new(multiplexed),
            exchange_edges: AtomicU64::new(0),
            exchanges: AtomicUsize::new(0),
            bodies: AtomicUsize::new(0),
            outside_bodies: AtomicUsize::new(0),
            untaken: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            read: AtomicU64::new(0),
            read_before_head: AtomicU64::new(0),
            written: AtomicU64::new(0),
            write_blocked: AtomicBool::new(false),
            half_closed: AtomicBool::new(false),
            end: Notify::new(),
        }
    }

    /// Whether it has several exchanges at a time.
    pub(super) fn is_multiplexed(&self) -> bool {
        self.multiplexed.load(Ordering::Relaxed)
    }

    /// Its first bytes are those of HTTP/2.
    pub(super) fn is_http2(&self) {
        self.multiplexed.store(true, Ordering::Relaxed);
    }

    /// Begins an exchange of HTTP/2, which the client may cancel at any time.
    pub(super) fn exchanging(self: &Arc<Self>) -> Exchanging {
        self.begin_exchange();
        Exchanging(Arc::clone(self))
    }

    /// The head of a request has been read.
    pub(super) fn begin_exchange(&self) {
        if self.is_multiplexed() {
            self.exchanges.fetch_add(1, Ordering::Relaxed);
            self.exchange_edges.fetch_add(1, Ordering::Relaxed);
        } else {
            self.exchanges.store(1, Ordering::Relaxed);
            add(&self.exchange_edges, 1);
        }
    }

    /// Its answer is ready to be written.
    pub(super) fn end_exchange(&self) {
        self.next_byte_begins_a_head();
        if self.is_multiplexed() {
            self.exchange_edges.fetch_add(1, Ordering::Relaxed);
            self.exchanges.fetch_sub(1, Ordering::Relaxed);
        } else {
            add(&self.exchange_edges, 1);
            self.exchanges.store(0, Ordering::Relaxed);
        }
    }

    /// A body is read from here on, which the client of HTTP/2 may cancel at any time.
    pub(super) fn reading(&self) -> Reading<'_> {
        self.bodies.fetch_add(1, Ordering::Relaxed);
        Reading(self)
    }

    /// The message of an exchange begins to arrive.
    pub(super) fn arriving(self: &Arc<Self>) -> Counted {
        Counted::new(self, |state| &state.bodies)
    }

    /// A body outside of exchanges begins to arrive.
    pub(super) fn arriving_outside(self: &Arc<Self>) -> Counted {
        Counted::new(self, |state| &state.outside_bodies)
    }

    /// An answer is there for the client to take.
    pub(super) fn untaken(self: &Arc<Self>) -> Counted {
        Counted::new(self, |state| &state.untaken)
    }

    /// A call begins that stays open between its messages.
    pub(super) fn streaming(self: &Arc<Self>) -> Counted {
        Counted::new(self, |state| &state.streams)
    }

    /// The bytes that the client sends from here on are of another request.
    pub(super) fn next_byte_begins_a_head(&self) {
        let read = self.read.load(Ordering::Relaxed);
        self.read_before_head.store(read, Ordering::Relaxed);
    }

    /// The client has sent these bytes.
    pub(super) fn has_read(&self, bytes: usize) {
        add(&self.read, bytes as u64);
    }

    /// The kernel has taken these bytes.
    pub(super) fn has_written(&self, bytes: usize) {
        add(&self.written, bytes as u64);
        self.write_blocked.store(false, Ordering::Relaxed);
    }

    /// The kernel takes no more bytes.
    pub(super) fn is_write_blocked(&self) {
        self.write_blocked.store(true, Ordering::Relaxed);
    }

    /// The client has closed its side. Whether hyper is not to know yet, because an answer to the
    /// client is still to be made or written.
    pub(super) fn half_close(&self) -> bool {
        if self.is_multiplexed() {
            // Its other exchanges would go on for a client that has gone.
            return false;
        }
        let in_exchange = self.is_in_exchange() && self.bodies() == 0;
        let withheld = in_exchange || self.write_blocked.load(Ordering::Relaxed);
        if withheld {
            self.half_closed.store(true, Ordering::Relaxed);
        }
        withheld
    }

    /// Completes when the connection is to end after its current exchange.
    pub(super) async fn asked_to_end(&self) {
        self.end.notified().await;
    }

    pub(super) fn ask_to_end(&self) {
        self.end.notify_one();
    }

    fn is_in_exchange(&self) -> bool {
        self.exchanges.load(Ordering::Relaxed) > 0
    }

    fn bodies(&self) -> usize {
        self.bodies.load(Ordering::Relaxed) + self.outside_bodies.load(Ordering::Relaxed)
    }

    pub(super) fn progress(&self) -> Progress {
        let edges = self.exchange_edges.load(Ordering::Relaxed);
        let read = self.read.load(Ordering::Relaxed);
        let exchanges = self.exchanges.load(Ordering::Relaxed);
        let is_computing = exchanges > self.bodies.load(Ordering::Relaxed);
        let is_unread =
            self.write_blocked.load(Ordering::Relaxed) || self.untaken.load(Ordering::Relaxed) > 0;
        let (phase, bytes) = if is_unread {
            (Phase::Writing, self.written.load(Ordering::Relaxed))
        } else if self.bodies() > 0 && !is_computing {
            (Phase::Body, read)
        } else if self.half_closed.load(Ordering::Relaxed) {
            (Phase::HalfClosed, read)
        } else if exchanges > 0 {
            (Phase::Serving, read)
        } else if !self.is_multiplexed() && read != self.read_before_head.load(Ordering::Relaxed) {
            // Between two calls HTTP/2 has frames that begin no head.
            (Phase::Head, read)
        } else {
            (Phase::Idle, read)
        };
        Progress {
            phase,
            edges,
            bytes,
            has_streams: self.streams.load(Ordering::Relaxed) > 0,
        }
    }
}

// === impl Exchanging ===

impl Drop for Exchanging {
    fn drop(&mut self) {
        self.0.end_exchange();
    }
}

// === impl Reading ===

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.next_byte_begins_a_head();
        self.0.bodies.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Counted ===

impl Counted {
    fn new(state: &Arc<ConnectionState>, counter: fn(&ConnectionState) -> &AtomicUsize) -> Self {
        counter(state).fetch_add(1, Ordering::Relaxed);
        let state = Arc::clone(state);
        Self { state, counter }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.state).fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds to a counter that has one writer, without the cost of an atomic addition.
fn add(counter: &AtomicU64, more: u64) {
    let now = counter.load(Ordering::Relaxed);
    counter.store(now.wrapping_add(more), Ordering::Relaxed);
}
