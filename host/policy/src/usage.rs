//! What a policy has taken so far, for whoever asks while it serves.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Figures of one policy, over all instances that it had.
#[derive(Debug, Default)]
pub struct Usage {
    memory_peak_bytes: AtomicUsize,
    log_lines_dropped: AtomicU64,
}

// === impl Usage ===

impl Usage {
    /// The largest linear memory that an instance has had, in bytes.
    pub fn memory_peak_bytes(&self) -> usize {
        self.memory_peak_bytes.load(Ordering::Relaxed)
    }

    /// Log lines past the limit of one call.
    pub fn log_lines_dropped(&self) -> u64 {
        self.log_lines_dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn memory_is(&self, bytes: usize) {
        self.memory_peak_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn lines_dropped(&self, lines: u64) {
        self.log_lines_dropped.fetch_add(lines, Ordering::Relaxed);
    }
}
