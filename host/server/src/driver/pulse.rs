//! Whether a driver still turns: written by its turns, read by liveness probes without a lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use switchyard_core::time::{Micros, Time};

/// A turn that takes longer counts as stuck. Turns take microseconds, and a policy's call at most
/// its window budget; a minute would leave clients waiting for an orchestrator's restart.
const STUCK_AFTER: Micros = Micros::from_millis(10_000);

/// The signs of life of a driver.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// When the turn under way began, plus 1; 0 between turns.
    turning_since: AtomicU64,
    has_failed: AtomicBool,
}

// === impl Pulse ===

impl Pulse {
    pub(super) fn begin_turn(&self, now: Time) {
        self.turning_since.store(now.0 + 1, Ordering::Relaxed);
    }

    pub(super) fn end_turn(&self) {
        self.turning_since.store(0, Ordering::Relaxed);
    }

    /// The driver has panicked.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Whether the driver turns.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn check(&self, now: Time) -> Result<(), String> {
        if self.has_failed() {
            return Err("its scheduler has failed; the server stops and must be restarted".into());
        }
        let turning_for = match self.turning_since.load(Ordering::Relaxed) {
            0 => Micros::ZERO,
            since => now.since(Time(since - 1)),
        };
        if turning_for > STUCK_AFTER {
            return Err(format!("its scheduler has been stuck for {turning_for}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_stuck_or_has_failed_is_not_alive() {
        let pulse = Pulse::default();
        let late = Time::ZERO + STUCK_AFTER + Micros(2);
        assert_eq!(pulse.check(late), Ok(()), "between turns");
        pulse.begin_turn(Time(1));
        assert_eq!(pulse.check(Time(1) + STUCK_AFTER), Ok(()));
        let stuck = pulse.check(late).unwrap_err();
        assert!(stuck.contains("stuck for 10000.001 ms"), "{stuck}");
        pulse.end_turn();
        assert_eq!(pulse.check(late), Ok(()));
        pulse.fail();
        assert!(pulse.check(late).unwrap_err().contains("failed"));
    }
}
