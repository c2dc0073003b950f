//! Seeded draws with the same bits on every machine.
//!
//! They use only `+ - * /` and square roots, which are exact by IEEE 754, and `libm`'s pure Rust `log`,
//! `exp` and `pow`. The platform's functions, which `rand_distr` calls, differ in the last bit between
//! systems.

use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// The purpose of a stream of random numbers. Each purpose has its own stream, so that a change in
/// one part of a run (a policy, for example) does not change the draws of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Arrival times.
    Arrivals = 1,
    /// Apps of the arrivals of a stream for several apps.
    Apps,
    /// Class labels and hardness of requests.
    Labels,
    /// Deadlines.
    Deadlines,
    /// Service times.
    Service,
    /// Neighbour counts and their delays.
    Evidence,
    /// The scheduler's own draws over routes.
    Routes,
    /// First weights, noise and order of samples of a learner.
    Learning,
    /// Attempts of a clairvoyant search.
    Foresight,
    /// Batches that fail.
    Failures,
    /// Lengths of requests.
    Lengths,
    /// Times and losses of messages.
    Links,
    /// Deaths and returns of workers.
    Deaths,
}

/// A stream of random numbers for one purpose.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

// === impl Stream ===

impl Stream {
    /// The stream of one purpose; `lane` separates streams of the same purpose, such as those of a
    /// workload's streams.
    pub fn new(seed: u64, purpose: Purpose, lane: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed_of(seed, purpose, lane)))
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        // 53 bits, scaled exactly.
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1, by inversion.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.uniform())
    }

    /// Normal with mean 0 and variance 1, by Marsaglia's polar method. The second number of the pair
    /// is not used, so that the generator is the only state of a stream.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// Gamma with this shape and mean 1 (Marsaglia and Tsang, "A Simple Method for Generating
    /// Gamma Variables", 2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = libm::pow(1.0 - self.uniform(), 1.0 / shape);
            return self.gamma_from_one(shape + 1.0) * boost / shape;
        }
        self.gamma_from_one(shape) / shape
    }

    fn gamma_from_one(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            let u = 1.0 - self.uniform();
            if libm::log(u) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }

    /// A position, drawn by weights that are given by their running sums.
    pub fn pick(&mut self, running_sums: &[f64]) -> usize {
        let total = running_sums.last().copied().unwrap_or(0.0);
        let at = self.uniform() * total;
        running_sums
            .partition_point(|&sum| sum <= at)
            .min(running_sums.len().saturating_sub(1))
    }
}

/// Running sums of weights, for [`Stream::pick`].
pub(crate) fn running_sums(weights: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    weights
        .into_iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect()
}

/// Independent seeds from related numbers.
pub(crate) fn seed_of(seed: u64, purpose: Purpose, lane: u64) -> u64 {
    mix(mix(mix(seed) ^ purpose as u64) ^ lane)
}

/// `SplitMix64`'s output function (Steele, Lea and Flood, 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let x = draw();
            sum += x;
            squares += x * x;
        }
        let mean = sum / DRAWS as f64;
        (mean, squares / DRAWS as f64 - mean * mean)
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        let mut stream = Stream::new(1, Purpose::Service, 0);
        let cases: [(&str, f64, f64, (f64, f64)); 5] = [
            ("uniform", 0.5, 1.0 / 12.0, moments(|| stream.uniform())),
            ("exponential", 1.0, 1.0, moments(|| stream.exponential())),
            ("normal", 0.0, 1.0, moments(|| stream.normal())),
            ("gamma 4", 1.0, 0.25, moments(|| stream.gamma(4.0))),
            ("gamma 0.5", 1.0, 2.0, moments(|| stream.gamma(0.5))),
        ];
        for (name, mean, variance, (got_mean, got_variance)) in cases {
            assert!((got_mean - mean).abs() < 0.015, "{name}: mean {got_mean}");
            let error = (got_variance - variance).abs() / variance;
            assert!(error < 0.03, "{name}: variance {got_variance}");
        }
    }

    /// A change of these bits changes every published run.
    #[test]
    fn the_bits_are_the_same_everywhere() {
        let mut stream = Stream::new(7, Purpose::Arrivals, 3);
        let bits = [
            stream.uniform(),
            stream.exponential(),
            stream.normal(),
            stream.gamma(2.5),
        ]
        .map(f64::to_bits);
        assert_eq!(bits, PINNED);
    }

    const PINNED: [u64; 4] = [
        4601764872459796194,
        4611831808850784994,
        4608734096522422527,
        4607600760810291176,
    ];

    #[test]
    fn purposes_and_lanes_do_not_share_numbers() {
        let first = |purpose, lane| Stream::new(5, purpose, lane).uniform().to_bits();
        let all = [
            first(Purpose::Arrivals, 0),
            first(Purpose::Arrivals, 1),
            first(Purpose::Labels, 0),
            first(Purpose::Service, 0),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one));
        }
    }

    #[test]
    fn picks_are_in_proportion_to_the_weights() {
        let mut stream = Stream::new(2, Purpose::Apps, 0);
        let sums = running_sums([1.0, 0.0, 3.0]);
        let mut counts = [0usize; 3];
        for _ in 0..DRAWS {
            counts[stream.pick(&sums)] += 1;
        }
        assert_eq!(counts[1], 0, "a weight of 0 is never picked");
        let share = counts[2] as f64 / DRAWS as f64;
        assert!((share - 0.75).abs() < 0.01, "{share}");
    }
}
