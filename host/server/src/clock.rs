//! The live driver's clock: only here the server reads the time for the core.

use std::time::{Duration, Instant};

use switchyard_core::time::{Micros, Time};

/// Microseconds since the server began, monotonic. Copies are the same clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

// === impl Clock ===

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        Time::ZERO + Micros::from(self.began.elapsed())
    }

    /// The moment of a time, on the system's monotonic clock.
    pub fn at(&self, time: Time) -> Instant {
        self.began + Duration::from_micros(time.0)
    }
}
