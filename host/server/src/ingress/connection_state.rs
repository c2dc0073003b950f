//! The progress of one connection, written by its task and read by the acceptor.
//!
//! Every field is an atomic with one writer, so that progress costs a request a few loads and
//! stores of a cache line of its own.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

/// The progress of one connection.
#[derive(Debug)]
pub(super) struct ConnectionState {
    /// Address of the client.
    pub(super) peer: SocketAddr,
    /// Begins and ends of exchanges: odd during one.
    exchange_edges: AtomicU64,
    /// Bytes that the client sent.
    read: AtomicU64,
    /// The same at the end of the last exchange or body: more bytes belong to the next head.
    read_before_head: AtomicU64,
    /// Bytes that the kernel took for the client.
    written: AtomicU64,
    /// A body is being read, or the rest of a refused one discarded.
    in_body: AtomicBool,
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
}

// === impl ConnectionState ===

impl ConnectionState {
    pub(super) fn new(peer: SocketAddr) -> Self {
        Self {
            peer,
            exchange_edges: AtomicU64::new(0),
            read: AtomicU64::new(0),
            read_before_head: AtomicU64::new(0),
            written: AtomicU64::new(0),
            in_body: AtomicBool::new(false),
            write_blocked: AtomicBool::new(false),
            half_closed: AtomicBool::new(false),
            end: Notify::new(),
        }
    }

    /// The head of a request has been read.
    pub(super) fn begin_exchange(&self) {
        add(&self.exchange_edges, 1);
    }

    /// Its answer is ready to be written.
    pub(super) fn end_exchange(&self) {
        self.next_byte_begins_a_head();
        add(&self.exchange_edges, 1);
    }

    /// A body is read from here on.
    pub(super) fn begin_body(&self) {
        self.in_body.store(true, Ordering::Relaxed);
    }

    /// It is complete, or given up.
    pub(super) fn end_body(&self) {
        self.next_byte_begins_a_head();
        self.in_body.store(false, Ordering::Relaxed);
    }

    fn next_byte_begins_a_head(&self) {
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
        let edges = self.exchange_edges.load(Ordering::Relaxed);
        let in_exchange = edges % 2 == 1 && !self.in_body.load(Ordering::Relaxed);
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

    pub(super) fn progress(&self) -> Progress {
        let edges = self.exchange_edges.load(Ordering::Relaxed);
        let read = self.read.load(Ordering::Relaxed);
        let (phase, bytes) = if self.write_blocked.load(Ordering::Relaxed) {
            (Phase::Writing, self.written.load(Ordering::Relaxed))
        } else if self.in_body.load(Ordering::Relaxed) {
            (Phase::Body, read)
        } else if self.half_closed.load(Ordering::Relaxed) {
            (Phase::HalfClosed, read)
        } else if edges % 2 == 1 {
            (Phase::Serving, read)
        } else if read != self.read_before_head.load(Ordering::Relaxed) {
            (Phase::Head, read)
        } else {
            (Phase::Idle, read)
        };
        Progress {
            phase,
            edges,
            bytes,
        }
    }
}

/// Adds to a counter that has one writer, without the cost of an atomic addition.
fn add(counter: &AtomicU64, more: u64) {
    let now = counter.load(Ordering::Relaxed);
    counter.store(now.wrapping_add(more), Ordering::Relaxed);
}
