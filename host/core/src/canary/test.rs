//! A sequential test of paired differences: it may be looked at after every pair.
//!
//! If baseline and candidate are equal, the sign of each difference d is that of a coin (`slots`), so that
//! for every l the product of exp(l d - l^2 d^2 / 2) over the pairs is a supermartingale, because
//! cosh(x) <= exp(x^2 / 2) (de la Peña, Annals of Probability 1999; Howard, Ramdas, McAuliffe and Sekhon,
//! Probability Surveys 2020, Lemma 3). Mixed over l ~ N(0, 1/r) it is
//! sqrt(r / (V + r)) exp(S^2 / (2 (V + r))), with S the sum of the differences and V the sum of their
//! squares. The mean of it over several r is the evidence. By Ville's inequality it ever reaches 1/e with
//! probability at most e, whatever the distribution of the differences.

/// Scales of the mixture, in squares of a sum of differences: from ten pairs that differ by a hundredth
/// to ten that differ by one.
const SCALES: [f64; 5] = [1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// Steps of the search for the end of an interval.
const BISECTIONS: usize = 60;

/// The differences so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PairedTest {
    pairs: u64,
    sum: f64,
    squares: f64,
}

// === impl PairedTest ===

impl PairedTest {
    /// Adds a difference, candidate less baseline, -1 to 1.
    pub(super) fn add(&mut self, difference: f64) {
        self.pairs += 1;
        self.sum += difference;
        self.squares += difference * difference;
    }

    /// Differences so far.
    pub(super) fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The mean difference.
    pub(super) fn mean(&self) -> f64 {
        match self.pairs {
            0 => 0.0,
            pairs => self.sum / pairs as f64,
        }
    }

    /// Evidence against differences that are symmetric around `center`; 1 for none.
    pub(super) fn evidence_against(&self, center: f64) -> f64 {
        let n = self.pairs as f64;
        let sum = self.sum - n * center;
        // Cancellation must not make it negative.
        let squares = (self.squares - 2.0 * center * self.sum + n * center * center).max(0.0);
        let of_scale = |scale: f64| {
            let total = squares + scale;
            libm::sqrt(scale / total) * libm::exp(sum * sum / (2.0 * total))
        };
        SCALES.into_iter().map(of_scale).sum::<f64>() / SCALES.len() as f64
    }

    /// The centers against which there is less evidence than 1/`error`: the confidence sequence of the mean
    /// difference for differences that are symmetric around their mean. Within -1 to 1.
    pub(super) fn interval(&self, error: f64) -> (f64, f64) {
        let mean = self.mean();
        let is_inside = |center: f64| self.evidence_against(center) < 1.0 / error;
        let end = |outside: f64| {
            if is_inside(outside) {
                return outside;
            }
            let (mut inside, mut outside) = (mean, outside);
            for _ in 0..BISECTIONS {
                let middle = f64::midpoint(inside, outside);
                match is_inside(middle) {
                    true => inside = middle,
                    false => outside = middle,
                }
            }
            inside
        };
        (end(-1.0), end(1.0))
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    fn of(differences: &[f64]) -> PairedTest {
        let mut test = PairedTest::default();
        differences.iter().for_each(|&d| test.add(d));
        test
    }

    #[test]
    fn no_pair_is_no_evidence() {
        assert_eq!(PairedTest::default().evidence_against(0.0), 1.0);
        assert_eq!(PairedTest::default().interval(0.01), (-1.0, 1.0));
        // Equal answers neither.
        assert!(of(&[0.0; 1_000]).evidence_against(0.0) <= 1.0);
    }

    #[test]
    fn evidence_is_the_mixture_by_hand() {
        // S = 0.6, V = 0.2.
        let test = of(&[0.4, 0.2]);
        let scale = |r: f64| (r / (0.2 + r)).sqrt() * (0.36 / (2.0 * (0.2 + r))).exp();
        let by_hand = (scale(1e-3) + scale(1e-2) + scale(1e-1) + scale(1.0) + scale(10.0)) / 5.0;
        assert!((test.evidence_against(0.0) - by_hand).abs() < 1e-12);
    }

    #[test]
    fn a_constant_difference_is_seen_after_some_pairs() {
        let needed = |size: f64| {
            let mut test = PairedTest::default();
            while test.evidence_against(0.0) < 100.0 {
                test.add(size);
            }
            test.pairs()
        };
        for size in [0.01, 0.04, 0.2, 1.0] {
            assert!((8..=25).contains(&needed(size)), "{size}: {}", needed(size));
        }
    }

    #[test]
    fn equal_members_are_seldom_called_different() {
        let error = 0.05;
        let mut wrong = 0;
        for seed in 0..400 {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut test = PairedTest::default();
            for _ in 0..400 {
                // Seldom large, which a test of normal differences would take for evidence.
                let size = if random.random_bool(0.1) { 0.8 } else { 0.02 };
                test.add(if random.random() { size } else { -size });
                if test.evidence_against(0.0) >= 1.0 / error {
                    wrong += 1;
                    break;
                }
            }
        }
        assert!(wrong <= 20, "{wrong} of 400");
    }

    #[test]
    fn the_interval_holds_the_mean_and_narrows() {
        let few = of(&[0.1, -0.05, 0.12, 0.03]);
        let (low, high) = few.interval(0.01);
        assert!(low < few.mean() && few.mean() < high);
        let many: Vec<f64> = [0.1, -0.05, 0.12, 0.03].repeat(50);
        let (lower, upper) = of(&many).interval(0.01);
        assert!(upper - lower < (high - low) / 4.0, "{lower} to {upper}");
        assert!(lower > 0.0, "{lower}");
    }
}
