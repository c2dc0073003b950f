//! Renewal processes: independent gaps of one law.

use crate::random::Stream;

/// Arrivals with independent gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenewalArrivals {
    /// Mean gap.
    pub(super) gap_us: f64,
    pub(super) law: GapLaw,
}

/// The law of a gap.
#[derive(Clone, Copy, Debug)]
pub(super) enum GapLaw {
    Fixed,
    Exponential,
    Gamma(f64),
    Erlang(u32),
}

// === impl RenewalArrivals ===

impl RenewalArrivals {
    pub(super) fn next(&self, now_us: f64, random: &mut Stream) -> f64 {
        now_us + self.gap_us * self.law.draw(random)
    }
}

// === impl GapLaw ===

impl GapLaw {
    /// A gap with mean 1.
    fn draw(self, random: &mut Stream) -> f64 {
        match self {
            Self::Fixed => 1.0,
            Self::Exponential => random.exponential(),
            Self::Gamma(shape) => random.gamma(shape),
            Self::Erlang(stages) => {
                let sum: f64 = (0..stages).map(|_| random.exponential()).sum();
                sum / f64::from(stages)
            }
        }
    }
}
