//! What one policy may take: time, memory, words.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::ResourceLimiter;

use crate::usage::Usage;

/// Bounds of one policy. Everything past one has a stated answer. Time is the policy's own
/// time on a processor where the system tells it; a call that waits for a processor is cut
/// after four times as long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time for one window, and for saving or restoring state; past it the call is cut.
    pub window_budget: Duration,
    /// Time for a fresh instance and its configuration after a fault, spent by the window
    /// that finds none; past it that window is a fault as well.
    pub restart_budget: Duration,
    /// Time for `describe`, and for `configure` at load and when the catalog changes.
    pub configure_budget: Duration,
    /// Linear memory; growth beyond it is refused.
    pub memory_bytes: usize,
    /// Entries of all tables together; growth beyond it is refused.
    pub table_entries: usize,
    /// What one call may make the host copy out of it. Lists can overlap, so memory alone
    /// does not bound this.
    pub crossing_bytes: usize,
    /// Log lines of one call; more are dropped and counted.
    pub log_lines: u32,
    /// Bytes of one log line; the rest is cut off.
    pub log_line_bytes: usize,
    /// The largest artifact handed out.
    pub artifact_bytes: u64,
    /// State handed from version to version; more is a fault and the next one starts fresh.
    pub state_bytes: usize,
}

/// Refuses growth beyond the limits and remembers that it did: the guest sees only that it
/// failed, and mostly traps.
pub(crate) struct Limiter {
    memory_bytes: usize,
    table_entries: usize,
    /// Bytes asked for when growth was refused, since the last call to `take_refused`.
    refused: Option<usize>,
    usage: Arc<Usage>,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            window_budget: Duration::from_millis(5),
            restart_budget: Duration::from_millis(50),
            configure_budget: Duration::from_millis(500),
            memory_bytes: 16 << 20,
            table_entries: 20_000,
            crossing_bytes: 32 << 20,
            log_lines: 20,
            log_line_bytes: 2_000,
            artifact_bytes: 8 << 20,
            state_bytes: 1 << 20,
        }
    }
}

// === impl Limiter ===

impl Limiter {
    pub(crate) fn new(limits: &Limits, usage: Arc<Usage>) -> Self {
        Self {
            memory_bytes: limits.memory_bytes,
            table_entries: limits.table_entries,
            refused: None,
            usage,
        }
    }

    pub(crate) fn take_refused(&mut self) -> Option<usize> {
        self.refused.take()
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let fits = desired <= self.memory_bytes;
        if fits {
            self.usage.memory_is(desired);
        } else {
            self.refused = Some(desired);
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let fits = desired <= self.table_entries;
        if !fits {
            self.refused = Some(desired.saturating_mul(size_of::<usize>()));
        }
        Ok(fits)
    }
}
