//! The distribution of the number of events in a time.
//!
//! A law is its mode and the ratio of neighbouring probabilities. Probabilities are built outwards
//! from the largest and divided by their sum: no factorial, no exponential, no overflow, and sums
//! are 1 to the last bits.

/// Probabilities below this share of the largest are 0. The largest is at least the reciprocal of
/// the number of counts, so the omitted probability is below 1e-18.
const NEGLIGIBLE: f64 = 1e-22;

/// Counts with independent, stationary increments (a Lévy process of counts, section 4.4.2).
pub trait ArrivalLaw {
    /// A most likely count within `time_us`.
    fn mode(&self, time_us: f64) -> usize;

    /// Probability of `count + 1` over that of `count`, for a time above 0.
    fn ratio(&self, count: usize, time_us: f64) -> f64;

    /// Probability that at least `least` of `total` events in `whole_us` were in the first
    /// `part_us`, for totals from `first_total` on. `least` is 1 to `first_total`; `part_us` is
    /// between 0 and `whole_us`.
    fn reached(
        &self,
        least: usize,
        first_total: usize,
        part_us: f64,
        whole_us: f64,
        chances: &mut [f64],
    );
}

/// Poisson: exponential gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poisson {
    /// Events per microsecond.
    pub rate_per_us: f64,
}

/// The distribution of a count.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// The smallest count kept.
    pub(crate) first: usize,
    /// Probabilities from `first` on.
    pub(crate) pmf: Vec<f64>,
    /// Probability of no more than `first`, `first + 1`, ...; the last is 1.
    cdf: Vec<f64>,
}

// === impl Poisson ===

impl ArrivalLaw for Poisson {
    fn mode(&self, time_us: f64) -> usize {
        (self.rate_per_us * time_us) as usize
    }

    fn ratio(&self, count: usize, time_us: f64) -> f64 {
        self.rate_per_us * time_us / (count + 1) as f64
    }

    /// Given the total, a binomial tail; `P(B(n+1) >= i) = P(B(n) >= i) + p P(B(n) = i-1)`.
    fn reached(
        &self,
        least: usize,
        first_total: usize,
        part_us: f64,
        whole_us: f64,
        chances: &mut [f64],
    ) {
        let share = part_us / whole_us;
        let mode = ((first_total + 1) as f64 * share) as usize;
        let odds = share / (1.0 - share);
        let ratio = |x: usize| (first_total - x) as f64 / (x + 1) as f64 * odds;
        let counts = Counts::from_ratios(mode.min(first_total), ratio);
        let mut tail = counts.above(least - 1);
        let mut below = counts.chance(least - 1);
        for (chance, total) in chances.iter_mut().zip(first_total..) {
            *chance = tail.min(1.0);
            tail += share * below;
            below *= (total + 1) as f64 / (total + 2 - least) as f64 * (1.0 - share);
        }
    }
}

// === impl Counts ===

impl Counts {
    pub(crate) fn new(law: &impl ArrivalLaw, time_us: f64) -> Self {
        if time_us <= 0.0 {
            return Self {
                first: 0,
                pmf: vec![1.0],
                cdf: vec![1.0],
            };
        }
        Self::from_ratios(law.mode(time_us), |count| law.ratio(count, time_us))
    }

    fn from_ratios(mode: usize, ratio: impl Fn(usize) -> f64) -> Self {
        let mut down = Vec::new();
        let mut chance = 1.0;
        for count in (0..mode).rev() {
            chance /= ratio(count);
            if chance < NEGLIGIBLE {
                break;
            }
            down.push(chance);
        }
        let first = mode - down.len();
        let mut pmf: Vec<f64> = down.into_iter().rev().collect();
        chance = 1.0;
        for count in mode.. {
            pmf.push(chance);
            chance *= ratio(count);
            // NaN: the ratio after the mode of a law that allows no more events.
            if chance.is_nan() || chance < NEGLIGIBLE {
                break;
            }
        }
        let sum: f64 = pmf.iter().sum();
        let mut upto = 0.0;
        let mut cdf = Vec::with_capacity(pmf.len());
        for chance in &mut pmf {
            *chance /= sum;
            upto += *chance;
            cdf.push(upto);
        }
        if let Some(last) = cdf.last_mut() {
            *last = 1.0;
        }
        Self { first, pmf, cdf }
    }

    /// The largest count kept.
    pub(crate) fn last(&self) -> usize {
        self.first + self.pmf.len() - 1
    }

    pub(crate) fn chance(&self, count: usize) -> f64 {
        let at = count.checked_sub(self.first);
        at.and_then(|at| self.pmf.get(at)).copied().unwrap_or(0.0)
    }

    /// Probability of at most `count`.
    pub(crate) fn upto(&self, count: isize) -> f64 {
        match usize::try_from(count) {
            Ok(count) if count >= self.first => {
                self.cdf.get(count - self.first).copied().unwrap_or(1.0)
            }
            _ => 0.0,
        }
    }

    /// Probability of more than `count`.
    pub(crate) fn above(&self, count: usize) -> f64 {
        // Summed from the small end: 1 minus the other side would lose the far tail.
        match (count + 1).saturating_sub(self.first) {
            from if from < self.pmf.len() => self.pmf[from..].iter().rev().sum(),
            _ => 0.0,
        }
    }

    /// `upto` of `last`, `last - 1`, ..., `first`: the order of a convolution.
    pub(crate) fn upto_downwards(&self) -> Vec<f64> {
        self.cdf.iter().rev().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_pmf(count: usize, mean: f64) -> f64 {
        let k = count as f64;
        k * mean.ln() - mean - libm::lgamma(k + 1.0)
    }

    #[test]
    fn poisson_equals_the_log_formula() {
        for mean in [1e-9, 0.3, 1.0, 17.5, 300.0, 1_712.0] {
            let counts = Counts::new(&Poisson { rate_per_us: mean }, 1.0);
            for count in counts.first..=counts.last() {
                let expected = log_pmf(count, mean).exp();
                assert!(
                    (counts.chance(count) - expected).abs() <= 1e-10 * expected,
                    "{count} of {mean}"
                );
            }
            assert!((counts.pmf.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            let beyond = log_pmf(counts.last() + 1, mean).exp();
            assert!(beyond < 1e-21, "{beyond} left out of {mean}");
        }
    }

    #[test]
    fn counts_of_two_times_add_up() {
        let law = Poisson { rate_per_us: 0.002 };
        let [one, other, both] = [31_000.0, 90_000.0, 121_000.0].map(|t| Counts::new(&law, t));
        for count in [150, 200, 242, 300] {
            let sum: f64 = (0..=count)
                .map(|k| one.chance(k) * other.chance(count - k))
                .sum();
            assert!((sum - both.chance(count)).abs() < 1e-15);
            let upto = both.upto(count as isize);
            assert!((upto + both.above(count) - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn reached_equals_the_convolution() {
        let law = Poisson { rate_per_us: 0.002 };
        let (part, whole) = (40_000.0, 100_000.0);
        let [first, second, all] = [part, whole - part, whole].map(|t| Counts::new(&law, t));
        let mut chances = [0.0; 60];
        law.reached(70, 180, part, whole, &mut chances);
        for (k, chance) in chances.iter().enumerate() {
            let total = 180 + k;
            let joint: f64 = (70..=total)
                .map(|x| first.chance(x) * second.chance(total - x))
                .sum();
            let expected = joint / all.chance(total);
            assert!((chance - expected).abs() < 1e-9, "{total}");
        }
    }
}
