//! The stability score (section V-C, eq. 3 and 4).
//!
//! Each candidate needs the score after another further wait L. Since exp((w + L) / tau - 1) =
//! exp(L / tau) * exp(w / tau - 1), and the clip cuts a queue sorted by waiting time in two, suffix
//! sums answer every candidate with a binary search per queue.

/// Beyond this exp is not finite; such waits are clipped.
const EXPONENT_MAX: f64 = 700.0;

/// Waits this close, in SLOs, share one exponential, which is most of a window's cost.
const NEAR: f64 = 1.0 / 64.0;

/// exp(x) for x from 0 to [`NEAR`], with an error of x^6 / 720 < 3e-14.
fn exp_near_zero(x: f64) -> f64 {
    const FACTORS: [f64; 5] = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0];
    1.0 + x * FACTORS.iter().fold(0.0, |sum, factor| sum * x + factor)
}

/// Urgency of one task (eq. 3): min(exp(w / tau - 1), C); 1 after a wait of one SLO.
pub(crate) fn urgency(wait_us: f64, tau_us: f64, clip: f64) -> f64 {
    libm::exp((wait_us / tau_us - 1.0).min(EXPONENT_MAX)).min(clip)
}

/// Suffix sums over one queue, which give its score after any further wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UrgencySums {
    /// Per position, the urgency of its task and all later ones; then 0.
    from: Vec<f64>,
    tau_us: f64,
    clip: f64,
    /// Waits from here on are clipped, in microseconds.
    clipped_us: f64,
}

// === impl UrgencySums ===

impl UrgencySums {
    /// Sums tasks; their waits are given longest first.
    pub(crate) fn fill(
        &mut self,
        waits_us: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator,
        tau_us: f64,
        clip: f64,
    ) {
        self.tau_us = tau_us;
        self.clip = clip;
        self.clipped_us = tau_us * (1.0 + libm::log(clip));
        self.from.clear();
        self.from.resize(waits_us.len() + 1, 0.0);
        let per_us = 1.0 / tau_us;
        let (mut sum, mut near_us, mut near) = (0.0, f64::NEG_INFINITY, 0.0);
        for (at, wait_us) in waits_us.enumerate().rev() {
            let more = (wait_us - near_us) * per_us;
            sum += if wait_us >= self.clipped_us {
                clip
            } else if more <= NEAR {
                near * exp_near_zero(more)
            } else {
                (near_us, near) = (wait_us, urgency(wait_us, tau_us, f64::INFINITY));
                near
            };
            self.from[at] = sum;
        }
    }

    /// Eq. 4 over the tasks from position `first` on, after a further wait of `longer_us`;
    /// `wait_us` gives the wait of a position.
    pub(crate) fn after(
        &self,
        first: usize,
        longer_us: f64,
        wait_us: impl Fn(usize) -> f64,
    ) -> f64 {
        let len = self.from.len().saturating_sub(1);
        let (mut clipped, mut end) = (first, len);
        while clipped < end {
            let middle = clipped + (end - clipped) / 2;
            if wait_us(middle) + longer_us >= self.clipped_us {
                clipped = middle + 1;
            } else {
                end = middle;
            }
        }
        let rest = self.from.get(clipped).copied().unwrap_or(0.0);
        let grown = libm::exp((longer_us / self.tau_us).min(EXPONENT_MAX));
        self.clip * clipped.saturating_sub(first) as f64 + grown * rest
    }
}
