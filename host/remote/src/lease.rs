//! The time in which a worker's server is its server: from the connection to its end, or until the
//! server's name lists its address no longer.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// A lease.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// Batches on the way.
    running: AtomicUsize,
    ended: watch::Sender<bool>,
}

/// A batch on the way, until this is dropped.
pub(crate) struct OnTheWay<'a>(&'a Lease);

// === impl Lease ===

impl Lease {
    /// A batch is sent.
    pub(crate) fn send(&self) -> OnTheWay<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        OnTheWay(self)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// No more batches; those on the way may end.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }

    pub(crate) fn is_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        // No error: the sender is part of `self`.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
