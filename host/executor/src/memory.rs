//! The memory that a device really has for a worker's budget.
//!
//! A worker's budget is granted by its operator. A GPU's memory is shared with other workers, other
//! processes and the libraries' own workspaces, so less may be available than was granted. This
//! module computes with numbers only; it has no type of CUDA.

use thiserror::Error;

/// A device's memory, as its driver counts it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// All of it.
    pub total: u64,
    /// The driver would give it to any process.
    pub free: u64,
    /// This process has taken it from the driver and does not use it: its allocator gives it out
    /// again.
    pub idle: u64,
}

/// Reads a device's memory.
pub trait MemoryGauge: Send + Sync {
    /// The memory now; `None` if it cannot be read.
    fn read(&self) -> Option<DeviceMemory>;
}

/// A budget larger than the device's memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{budget_mib} MiB, the device has {total_mib} MiB in all")]
pub struct BudgetExceedsDevice {
    budget_mib: u64,
    total_mib: u64,
}

/// Left for activations and the libraries' workspaces, which no worker's budget covers.
pub const HEADROOM_BYTES: u64 = 256 << 20;

// === impl DeviceMemory ===

impl DeviceMemory {
    /// Bytes that this process could use.
    pub fn available(&self) -> u64 {
        self.free.saturating_add(self.idle)
    }

    /// Checks a budget against the total: a larger one is a mistake of the configuration, while
    /// free memory varies.
    ///
    /// # Errors
    /// The budget is larger.
    pub fn grant(&self, budget_bytes: u64) -> Result<(), BudgetExceedsDevice> {
        if budget_bytes <= self.total {
            return Ok(());
        }
        Err(BudgetExceedsDevice {
            budget_mib: budget_bytes >> 20,
            total_mib: self.total >> 20,
        })
    }

    /// Bytes that are missing of `unused`, the rest of a worker's budget by its own books. The
    /// cache counts them as taken, so that it evicts before the device refuses.
    pub fn shortfall(&self, unused: u64) -> u64 {
        unused.saturating_sub(self.available().saturating_sub(HEADROOM_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn memory(free: u64, idle: u64) -> DeviceMemory {
        DeviceMemory {
            total: 16 * GIB,
            free,
            idle,
        }
    }

    #[test]
    fn a_budget_beyond_the_device_is_refused_with_both_numbers() {
        let gpu = memory(GIB, 0);
        assert_eq!(gpu.grant(16 * GIB), Ok(()), "free memory varies");
        let refused = gpu.grant(17 * GIB).map_err(|error| error.to_string());
        let message = "17408 MiB, the device has 16384 MiB in all".to_owned();
        assert_eq!(refused, Err(message));
    }

    #[test]
    fn nothing_is_missing_if_the_device_has_enough() {
        assert_eq!(memory(8 * GIB, 0).shortfall(4 * GIB), 0);
        assert_eq!(
            memory(GIB, 4 * GIB).shortfall(4 * GIB),
            0,
            "its own idle memory counts"
        );
        assert_eq!(memory(0, 0).shortfall(0), 0);
    }

    #[test]
    fn memory_that_other_processes_took_is_missing() {
        // 4 GiB unused by the books, 1 GiB available, of which the headroom is not for models.
        let short = memory(GIB, 0).shortfall(4 * GIB);
        assert_eq!(short, 3 * GIB + HEADROOM_BYTES);
        assert_eq!(memory(0, 0).shortfall(4 * GIB), 4 * GIB);
    }
}
