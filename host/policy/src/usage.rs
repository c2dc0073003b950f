//! The memory and log lines that a policy has used so far, readable while it serves.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Resources that one policy has used, over all its instances.
#[derive(Debug, Default)]
pub struct PolicyUsage {
    memory_peak_bytes: AtomicUsize,
    log_lines_dropped: AtomicU64,
    log_lines_over_rate: AtomicU64,
}

// === impl PolicyUsage ===

impl PolicyUsage {
    /// The most bytes of linear memory, over all memories of an instance, that any instance held.
    pub fn memory_peak_bytes(&self) -> usize {
        self.memory_peak_bytes.load(Ordering::Relaxed)
    }

    /// Log lines that were dropped because their call had written its limit.
    pub fn log_lines_dropped(&self) -> u64 {
        self.log_lines_dropped.load(Ordering::Relaxed)
    }

    /// Log lines that were dropped because the policy had written its limit of the second.
    pub fn log_lines_over_rate(&self) -> u64 {
        self.log_lines_over_rate.load(Ordering::Relaxed)
    }

    pub(crate) fn memory_is(&self, bytes: usize) {
        self.memory_peak_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn lines_dropped(&self, lines: u64) {
        self.log_lines_dropped.fetch_add(lines, Ordering::Relaxed);
    }

    pub(crate) fn line_over_rate(&self) {
        self.log_lines_over_rate.fetch_add(1, Ordering::Relaxed);
    }
}
