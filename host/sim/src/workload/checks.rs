//! Ranges of numbers in workloads.

use super::error::WorkloadError;

pub(super) fn positive(part: &str, field: &str, value: f64) -> Result<(), WorkloadError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    let reason = format!("must be positive, not {value}");
    Err(WorkloadError::value(format!("{part}.{field}"), reason))
}

pub(super) fn not_negative(part: &str, field: &str, value: f64) -> Result<(), WorkloadError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    let reason = format!("must be at least 0, not {value}");
    Err(WorkloadError::value(format!("{part}.{field}"), reason))
}

/// Most arrivals at once, or in one window, and most stages of a gap: each of them is drawn.
const DRAWN_MAX: u32 = 1_000_000;

/// A count of draws.
pub(super) fn drawn(part: &str, field: &str, count: u32) -> Result<(), WorkloadError> {
    if (1..=DRAWN_MAX).contains(&count) {
        return Ok(());
    }
    let reason = format!("must be 1 to {DRAWN_MAX}, not {count}");
    Err(WorkloadError::value(format!("{part}.{field}"), reason))
}

/// All rates are at least 0, and one is positive.
pub(super) fn some_rate(
    part: &str,
    field: &str,
    rates: impl Iterator<Item = f64>,
) -> Result<(), WorkloadError> {
    let mut any = false;
    for rate in rates {
        not_negative(part, field, rate)?;
        any |= rate > 0.0;
    }
    if any {
        return Ok(());
    }
    let reason = "at least one rate must be positive";
    Err(WorkloadError::value(format!("{part}.{field}"), reason))
}
