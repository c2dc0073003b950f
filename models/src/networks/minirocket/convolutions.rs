//! The convolutions of MiniRocket: 84 kernels, their dilations, features per dilation.

use std::ops::Range;

/// Length of a kernel.
pub(super) const REACH: usize = 9;

/// Number of ways to put three weights of 2 among nine; the other six are -1, so that weights sum
/// to 0.
pub(super) const KERNELS: usize = 84;

/// Most dilations of a kernel, as in the paper.
const DILATIONS_MAX: usize = 32;

/// A dilation of all kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dilation {
    /// Moments from one weight to the next.
    pub(super) step: usize,
    /// Features of each kernel.
    pub(super) features: usize,
    /// Whether kernels of even index extend beyond the ends of the window, where there are zeros,
    /// and those of odd index do not; otherwise the reverse.
    pub(super) even_padded: bool,
}

/// The dilations of a transform, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DilationPlan(Vec<Dilation>);

/// Positions of the weights of 2 of every kernel, in lexicographic order.
pub(super) fn kernels() -> [[usize; 3]; KERNELS] {
    let mut all = [[0; 3]; KERNELS];
    let mut next = all.iter_mut();
    for a in 0..REACH {
        for b in a + 1..REACH {
            for c in b + 1..REACH {
                if let Some(kernel) = next.next() {
                    *kernel = [a, b, c];
                }
            }
        }
    }
    all
}

// === impl Dilation ===

impl Dilation {
    /// Moments lost at each end by a kernel that does not extend beyond them.
    pub(super) fn margin(self) -> usize {
        self.step * (REACH / 2)
    }

    pub(super) fn padded(self, kernel: usize) -> bool {
        kernel.is_multiple_of(2) == self.even_padded
    }

    /// Relative time of the dilation: a convolution costs as much as a few comparisons.
    pub(super) fn cost(self) -> f64 {
        4.0 + self.features as f64
    }
}

// === impl DilationPlan ===

impl DilationPlan {
    /// Dilations for windows of `length` moments, exponentially spaced so that the widest kernel
    /// is as long as the window (section 4.1 of the paper and its `_fit_dilations`).
    pub(super) fn new(length: usize, features_per_kernel: usize) -> Self {
        let count = features_per_kernel.min(DILATIONS_MAX);
        let top = ((length as f64 - 1.0) / (REACH as f64 - 1.0)).log2();
        let mut dilations: Vec<(usize, usize)> = Vec::new();
        for i in 0..count {
            let exponent = top * i as f64 / (count as f64 - 1.0).max(1.0);
            let step = exponent.exp2() as usize;
            match dilations.last_mut() {
                Some((last, hits)) if *last == step => *hits += 1,
                _ => dilations.push((step, 1)),
            }
        }
        let mut features: Vec<usize> = dilations
            .iter()
            .map(|(_, hits)| hits * features_per_kernel / count)
            .collect();
        // Distributes the rest left by rounding down, one feature each, from the shortest dilation
        // on.
        let missing = features_per_kernel - features.iter().sum::<usize>();
        for i in 0..missing {
            let at = i % features.len();
            features[at] += 1;
        }
        let dilation = |(i, (&(step, _), features)): (usize, (&(usize, usize), usize))| Dilation {
            step,
            features,
            even_padded: i.is_multiple_of(2),
        };
        Self(
            dilations
                .iter()
                .zip(features)
                .enumerate()
                .map(dilation)
                .collect(),
        )
    }

    pub(super) fn dilations(&self) -> &[Dilation] {
        &self.0
    }

    /// Some neighbouring dilations.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        Self(self.0[range].to_vec())
    }

    /// Features of all kernels and dilations together.
    pub(super) fn features(&self) -> usize {
        KERNELS * self.0.iter().map(|d| d.features).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_84_kernels_and_their_weights_sum_to_zero() {
        let kernels = kernels();
        for (i, kernel) in kernels.iter().enumerate() {
            assert!(kernel.is_sorted() && kernel[2] < REACH, "{kernel:?}");
            assert!(!kernels[..i].contains(kernel), "{kernel:?} twice");
            let weight = |at: usize| if kernel.contains(&at) { 2 } else { -1 };
            assert_eq!((0..REACH).map(weight).sum::<i32>(), 0, "{kernel:?}");
        }
        assert_eq!(kernels[0], [0, 1, 2]);
        assert_eq!(kernels[KERNELS - 1], [6, 7, 8]);
    }

    /// Against the reference implementation's `_fit_dilations(150, 84 * 24, 32)`.
    #[test]
    fn dilations_grow_to_the_length_of_the_window() {
        let plan = DilationPlan::new(150, 24);
        let steps: Vec<usize> = plan.0.iter().map(|d| d.step).collect();
        assert_eq!(steps, [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 16, 18]);
        let features: Vec<usize> = plan.0.iter().map(|d| d.features).collect();
        assert_eq!(features, [6, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        let widest = plan.0[steps.len() - 1];
        assert!(widest.margin() * 2 < 150);
    }

    #[test]
    fn parts_have_the_features_of_the_whole() {
        let plan = DilationPlan::new(150, 40);
        let sum = plan.part(0..5).features() + plan.part(5..plan.0.len()).features();
        assert_eq!(sum, plan.features());
        assert_eq!(sum, 84 * 40);
    }
}
