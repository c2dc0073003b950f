//! How much of a budget a device's memory really has.
//!
//! A worker's budget is what its operator grants it. A card's memory is shared with other workers,
//! other processes and the libraries' own workspaces, so that less may be there than was granted.
//! Nothing here knows CUDA: numbers come in, numbers go out.

use thiserror::Error;

/// A device's memory, as its driver counts it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// All there is.
    pub total: u64,
    /// What the driver would give to anybody.
    pub free: u64,
    /// What this process has taken from the driver and not in use: its allocator gives it out again.
    pub idle: u64,
}

/// Reads a device's memory.
pub trait MemoryGauge: Send + Sync {
    /// What it holds now; none when it cannot be read.
    fn read(&self) -> Option<DeviceMemory>;
}

/// A budget that the device does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{budget_mib} MiB, the device has {total_mib} MiB in all")]
pub struct TooMuch {
    budget_mib: u64,
    total_mib: u64,
}

/// Left for activations and the libraries' workspaces: what a batch allocates while it runs is no
/// part of a worker's budget.
pub const HEADROOM_BYTES: u64 = 256 << 20;

// === impl DeviceMemory ===

impl DeviceMemory {
    /// Bytes that this process could have.
    pub fn available(&self) -> u64 {
        self.free.saturating_add(self.idle)
    }

    /// Checks a budget against all there is: what is more was a mistake of the configuration, and
    /// not of the moment.
    ///
    /// # Errors
    /// It is more.
    pub fn grant(&self, budget_bytes: u64) -> Result<(), TooMuch> {
        if budget_bytes <= self.total {
            return Ok(());
        }
        Err(TooMuch {
            budget_mib: budget_bytes >> 20,
            total_mib: self.total >> 20,
        })
    }

    /// How much less than `unused`, which a worker's budget has left by its own books, there
    /// really is. Whoever loads counts it as taken, and so evicts before the device refuses.
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
        let card = memory(GIB, 0);
        assert_eq!(card.grant(16 * GIB), Ok(()), "what is free may change");
        let refused = card.grant(17 * GIB).map_err(|error| error.to_string());
        let said = "17408 MiB, the device has 16384 MiB in all".to_owned();
        assert_eq!(refused, Err(said));
    }

    #[test]
    fn nothing_falls_short_where_there_is_enough() {
        assert_eq!(memory(8 * GIB, 0).shortfall(4 * GIB), 0);
        assert_eq!(
            memory(GIB, 4 * GIB).shortfall(4 * GIB),
            0,
            "its own idle memory counts"
        );
        assert_eq!(memory(0, 0).shortfall(0), 0);
    }

    #[test]
    fn what_others_have_taken_falls_short() {
        // 4 GiB unused by the books, 1 GiB there, of which the headroom is not for models.
        let short = memory(GIB, 0).shortfall(4 * GIB);
        assert_eq!(short, 3 * GIB + HEADROOM_BYTES);
        assert_eq!(memory(0, 0).shortfall(4 * GIB), 4 * GIB);
    }
}
