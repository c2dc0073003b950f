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
    /// Linear memories and tables of one instance of the policy together. A component can hold many
    /// core instances; they share this. Growth beyond it is refused.
    pub memory_bytes: usize,
    /// Entries of one table. Growth beyond it is refused.
    pub table_entries: usize,
    /// Bytes that the host copies out of the policy in one call. More is a fault. Lists can
    /// overlap, so the memory limit does not bound this.
    pub crossing_bytes: usize,
    /// Log lines of one call. More are dropped and counted.
    pub log_lines: u32,
    /// Log lines of one second, by the time of the windows, after a first burst of `log_lines`. More
    /// are dropped, and the log says once a second how many.
    pub log_lines_per_s: u32,
    /// Bytes of one log line. The rest is cut off.
    pub log_line_bytes: usize,
    /// Bytes of one artifact. The policy gets no larger ones.
    pub artifact_bytes: u64,
    /// State that one version hands to the next. More is a fault, and the next version starts
    /// without state.
    pub state_bytes: usize,
}

/// Longest file of a component, in bytes. A longer one is refused before it is read. A Python
/// component with numpy takes about 50 MiB.
pub const COMPONENT_BYTES_MAX: u64 = 64 << 20;

/// Core instances of one component: a Python component has a few dozen. The engine keeps a record
/// of each.
const CORE_INSTANCES_MAX: usize = 256;

/// Linear memories of one component: languages use one, linked components one each. Each reserves
/// 4 GiB of addresses, so thousands would exhaust them.
const MEMORIES_MAX: usize = 16;

/// Tables of one component: about one for each core module.
const TABLES_MAX: usize = 64;

/// Bytes of one entry of a table.
const TABLE_ENTRY_BYTES: usize = size_of::<usize>();

/// Refuses growth beyond the limits and remembers the refusal: the guest sees only that its
/// allocation failed, and usually traps. Counts the memories and tables of one store together.
pub(crate) struct GrowthLimiter {
    memory_bytes: usize,
    table_entries: usize,
    held: HeldBytes,
    /// Bytes that the store would have held after the growth that was refused since the last call
    /// to `take_refused`.
    refused: Option<usize>,
    usage: Arc<PolicyUsage>,
}

/// Bytes that the memories and tables of a store hold.
#[derive(Default)]
struct HeldBytes {
    memories: usize,
    tables: usize,
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
            log_lines_per_s: 20,
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
            held: HeldBytes::default(),
            refused: None,
            usage,
        }
    }

    /// A new store holds nothing.
    pub(crate) fn store_begins(&mut self) {
        self.held = HeldBytes::default();
        self.refused = None;
    }

    pub(crate) fn take_refused(&mut self) -> Option<usize> {
        self.refused.take()
    }

    /// Whether the store may hold this much; remembers a refusal.
    fn admits(&mut self, held: &HeldBytes) -> bool {
        let bytes = held.memories.saturating_add(held.tables);
        let fits = bytes <= self.memory_bytes;
        if !fits {
            self.refused = Some(bytes);
        }
        fits
    }
}

impl ResourceLimiter for GrowthLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            // The memory's own type refuses it, so it holds no more than before.
            return Ok(true);
        }
        let grown = HeldBytes {
            memories: (self.held.memories).saturating_add(desired.saturating_sub(current)),
            ..self.held
        };
        let fits = self.admits(&grown);
        if fits {
            // Counted even if the system refuses the memory: the guest cannot gain by it.
            self.held = grown;
            self.usage.memory_is(self.held.memories);
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(true);
        }
        if desired > self.table_entries {
            self.refused = Some(desired.saturating_mul(TABLE_ENTRY_BYTES));
            return Ok(false);
        }
        let entries = desired.saturating_sub(current);
        let grown = HeldBytes {
            tables: (self.held.tables).saturating_add(entries.saturating_mul(TABLE_ENTRY_BYTES)),
            ..self.held
        };
        let fits = self.admits(&grown);
        if fits {
            self.held = grown;
        }
        Ok(fits)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn limiter(memory_bytes: usize) -> GrowthLimiter {
        let limits = Limits {
            memory_bytes,
            ..Limits::default()
        };
        GrowthLimiter::new(&limits, Arc::default())
    }

    #[test]
    fn memories_and_tables_of_a_store_share_the_limit() {
        let mut limiter = limiter(1_000_000);
        assert!(limiter.memory_growing(0, 500_000, None).unwrap());
        assert!(limiter.table_growing(0, 10_000, None).unwrap());
        assert!(!limiter.memory_growing(0, 500_000, None).unwrap());
        assert_eq!(limiter.take_refused(), Some(1_080_000));
        assert!(limiter.memory_growing(500_000, 600_000, None).unwrap());
        assert_eq!(limiter.usage.memory_peak_bytes(), 600_000);
        limiter.store_begins();
        assert!(limiter.memory_growing(0, 1_000_000, None).unwrap());
    }

    #[test]
    fn growth_that_the_memory_itself_refuses_does_not_count() {
        let mut limiter = limiter(1_000);
        assert!(limiter.memory_growing(0, 900, Some(100)).unwrap());
        assert!(limiter.memory_growing(0, 900, None).unwrap());
    }
}
