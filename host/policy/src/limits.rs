//! Limits on one policy: time, memory, log lines, bytes that it hands out.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::ResourceLimiter;

use crate::usage::PolicyUsage;

/// Limits on one policy; each field states the consequence. Times are time on a processor, on
/// systems that measure it. A call that waits for a processor is cut after four times its budget of
/// wall time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time for one window, and for saving or restoring state. Past it the call is cut.
    pub window_budget: Duration,
    /// Time for a fresh instance and its configuration after a fault. The next window spends it.
    /// Past it that window is a fault as well.
    pub restart_budget: Duration,
    /// Time for `describe`, and for `configure` at load and when the catalog changes.
    pub configure_budget: Duration,
    /// Linear memory. Growth beyond it is refused.
    pub memory_bytes: usize,
    /// Entries of one table. Growth beyond it is refused.
    pub table_entries: usize,
    /// Bytes that the host copies out of the policy in one call. More is a fault. Lists can
    /// overlap, so the memory limit does not bound this.
    pub crossing_bytes: usize,
    /// Log lines of one call. More are dropped and counted.
    pub log_lines: u32,
    /// Bytes of one log line. The rest is cut off.
    pub log_line_bytes: usize,
    /// Bytes of one artifact. The policy gets no larger ones.
    pub artifact_bytes: u64,
    /// State that one version hands to the next. More is a fault, and the next version starts
    /// without state.
    pub state_bytes: usize,
}

/// Refuses growth beyond the limits and remembers the refusal: the guest sees only that its
/// allocation failed, and usually traps.
pub(crate) struct GrowthLimiter {
    memory_bytes: usize,
    table_entries: usize,
    /// Bytes of the growth that was refused since the last call to `take_refused`.
    refused: Option<usize>,
    usage: Arc<PolicyUsage>,
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

// === impl GrowthLimiter ===

impl GrowthLimiter {
    pub(crate) fn new(limits: &Limits, usage: Arc<PolicyUsage>) -> Self {
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

impl ResourceLimiter for GrowthLimiter {
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
