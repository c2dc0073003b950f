//! Time as the core knows it: whole microseconds on one monotonic clock.
//!
//! The core never reads a clock; the driver passes the time. The live driver counts from the start
//! of the process, the simulator from the start of its run.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the driver's clock began.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A length of time in microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub u64);

// === impl Time ===

impl Time {
    /// The clock's zero.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const NEVER: Self = Self(u64::MAX);

    /// Time from `earlier` to `self`, zero when `earlier` is the later one.
    pub fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Micros> for Time {
    type Output = Self;
    fn add(self, length: Micros) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Micros> for Time {
    fn add_assign(&mut self, length: Micros) {
        *self = *self + length;
    }
}

impl Sub<Micros> for Time {
    type Output = Self;
    fn sub(self, length: Micros) -> Self {
        Self(self.0.saturating_sub(length.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.0 as f64 / 1e3)
    }
}

// === impl Micros ===

impl Micros {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A length given in milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl Add for Micros {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Micros {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl From<Micros> for std::time::Duration {
    fn from(length: Micros) -> Self {
        Self::from_micros(length.0)
    }
}

impl From<std::time::Duration> for Micros {
    fn from(length: std::time::Duration) -> Self {
        Self(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.as_millis_f64())
    }
}
