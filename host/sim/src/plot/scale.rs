//! From values to positions on an axis, and the ticks of the axis.

use crate::text;

/// Ratio of the largest to the smallest value above which [`Scale::fitting`] is logarithmic.
const LOG_FROM: f64 = 30.0;

/// Maps the values from `low` to `high` onto [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Equal differences are equally long.
    Linear {
        /// The value at 0.
        low: f64,
        /// The value at 1.
        high: f64,
    },
    /// Equal factors are equally long; both ends are positive.
    Log {
        /// The value at 0.
        low: f64,
        /// The value at 1.
        high: f64,
    },
}

/// A value on an axis, and its label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// Its label.
    pub label: String,
}

impl Default for Scale {
    fn default() -> Self {
        Self::linear(0.0, 1.0)
    }
}

// === impl Scale ===

impl Scale {
    /// Linear, exactly from `low` to `high`; one unit wide if they are equal.
    pub fn linear(low: f64, high: f64) -> Self {
        match high - low > 0.0 {
            true => Self::Linear { low, high },
            false => Self::Linear {
                low: low - 0.5,
                high: low + 0.5,
            },
        }
    }

    /// Linear between round numbers around all values, in about `parts` steps. Includes 0 if `zero`
    /// is set, or if 0 is near compared with the spread of the values.
    pub fn around(values: impl IntoIterator<Item = f64>, zero: bool, parts: usize) -> Self {
        let Some((mut low, mut high)) = extent(values) else {
            return Self::linear(0.0, 1.0);
        };
        if zero || (low > 0.0 && low < 0.35 * high) {
            low = low.min(0.0);
        }
        if high - low <= 1e-9 * high.abs().max(1e-9) {
            let margin = if high == 0.0 { 1.0 } else { 0.05 * high.abs() };
            (low, high) = if zero {
                (low, high + margin)
            } else {
                (low - margin, high + margin)
            };
        }
        let step = step(low, high, parts);
        let (low, high) = (
            (low / step + 1e-9).floor() * step,
            (high / step - 1e-9).ceil() * step,
        );
        Self::linear(low, high)
    }

    /// As [`around`](Self::around), or logarithmic if all values are positive and the largest is more
    /// than 30 times the smallest.
    pub fn fitting(values: &[f64], zero: bool, parts: usize) -> Self {
        match extent(values.iter().copied()) {
            Some((low, high)) if low > 0.0 && high / low > LOG_FROM => Self::Log {
                low: round_down(low),
                high: round_up(high),
            },
            _ => Self::around(values.iter().copied(), zero, parts),
        }
    }

    /// Where a value stands: 0 at the low end, 1 at the high end.
    pub fn share(&self, value: f64) -> f64 {
        match *self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => libm::log(value.max(low) / low) / libm::log(high / low),
        }
    }

    /// The values at 0 and at 1.
    pub fn ends(&self) -> (f64, f64) {
        match *self {
            Self::Linear { low, high } | Self::Log { low, high } => (low, high),
        }
    }

    /// Whether equal factors are equally long.
    pub fn is_log(&self) -> bool {
        matches!(self, Self::Log { .. })
    }

    /// About `parts` ticks at round numbers.
    pub fn ticks(&self, parts: usize) -> Vec<Tick> {
        let (low, high) = self.ends();
        if let Self::Log { .. } = self {
            return log_ticks(low, high, parts);
        }
        let step = step(low, high, parts);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let tick = |i: i64| {
            let value = i as f64 * step;
            Tick {
                value,
                label: text::tick(value, step),
            }
        };
        (first..=last).map(tick).collect()
    }
}

/// 1, 2 and 5 times the powers of ten; fewer factors if that makes more than `parts` + 2 ticks.
fn log_ticks(low: f64, high: f64, parts: usize) -> Vec<Tick> {
    let round = |factors: &[f64]| {
        let mut ticks = Vec::new();
        let mut power = power_below(low);
        while power <= high {
            for factor in factors {
                let value = power * factor;
                if value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9) {
                    let label = text::tick(value, power * factor);
                    ticks.push(Tick { value, label });
                }
            }
            power *= 10.0;
        }
        ticks
    };
    let sets: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let fitting = sets
        .into_iter()
        .map(round)
        .find(|ticks| ticks.len() <= parts + 2);
    fitting.unwrap_or_else(|| round(&[1.0]))
}

fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(None, |extent, value| {
        let (low, high) = extent.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// The round step that divides an interval into about `parts`.
fn step(low: f64, high: f64, parts: usize) -> f64 {
    let raw = (high - low) / parts.max(1) as f64;
    let power = power_below(raw);
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = factors
        .into_iter()
        .find(|factor| factor * power >= raw * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// The largest power of ten that is not above a positive value.
fn power_below(value: f64) -> f64 {
    libm::pow(10.0, libm::floor(libm::log10(value.max(1e-300)) + 1e-9))
}

fn round_down(value: f64) -> f64 {
    let power = power_below(value);
    let factor = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|factor| factor * power <= value * 1.000_001);
    factor.unwrap_or(1.0) * power
}

fn round_up(value: f64) -> f64 {
    let power = power_below(value);
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= value * 0.999_999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, parts: usize) -> Vec<String> {
        scale
            .ticks(parts)
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn ticks_are_round() {
        let scale = Scale::around([0.62, 0.87], false, 4);
        assert_eq!(labels(scale, 4), ["0.6", "0.7", "0.8", "0.9"]);
        let scale = Scale::around([3.0, 1_170.0], true, 4);
        assert_eq!(labels(scale, 4), ["0", "500", "1,000", "1,500"]);
    }

    #[test]
    fn a_single_value_gets_a_margin() {
        let (low, high) = Scale::around([0.95, 0.95], false, 4).ends();
        assert!(low < 0.95 && high > 0.95, "{low} {high}");
        assert_eq!(Scale::around([0.0], true, 4).ends(), (0.0, 1.0));
        assert_eq!(Scale::around([f64::NAN], true, 4).ends(), (0.0, 1.0));
    }

    #[test]
    fn values_of_several_magnitudes_are_logarithmic() {
        let scale = Scale::fitting(&[12.0, 9_000.0], false, 5);
        assert_eq!(scale.ends(), (10.0, 10_000.0));
        assert_eq!(
            labels(scale, 5),
            ["10", "30", "100", "300", "1,000", "3,000", "10k"]
        );
        assert!((scale.share(100.0) - 1.0 / 3.0).abs() < 1e-12);
    }
}
