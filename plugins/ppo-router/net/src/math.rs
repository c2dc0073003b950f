//! Functions with the same bits on every machine.

/// Beyond this the rational function below is 1 in f32.
const TANH_MAX: f32 = 7.905_311;

/// tanh as a rational function, degree 13 over degree 6 (coefficients of the Eigen library), within
/// 4e-7. Only `+ - * /`: it vectorises, and every machine gives the same bits.
#[must_use]
#[inline]
pub fn tanh(x: f32) -> f32 {
    let x = x.clamp(-TANH_MAX, TANH_MAX);
    let square = x * x;
    let mut above = -2.760_768_5e-16;
    for coefficient in [
        2.000_188e-13,
        -8.604_672e-11,
        5.122_297e-8,
        1.485_722_4e-5,
        6.372_619e-4,
        4.893_524_6e-3,
    ] {
        above = above * square + coefficient;
    }
    let mut below = 1.198_258_4e-6;
    for coefficient in [1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3] {
        below = below * square + coefficient;
    }
    x * above / below
}

/// Shares that sum to 1, in proportion to `exp(logits)`.
pub fn softmax(logits: &[f32], shares: &mut Vec<f64>) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    shares.clear();
    let parts = logits.iter().map(|&f| libm::exp(f64::from(f - highest)));
    shares.extend(parts);
    let total: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= total);
}

/// Index of the largest number, the first of equals; 0 for an empty slice.
#[must_use]
pub fn argmax(numbers: &[f32]) -> usize {
    let mut best = 0;
    for (i, number) in numbers.iter().enumerate() {
        if *number > numbers[best] {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_is_accurate_and_within_its_range() {
        for i in -40_000..=40_000i32 {
            let x = i as f32 / 2_000.0;
            let (got, want) = (tanh(x), libm::tanh(f64::from(x)));
            assert!(
                (f64::from(got) - want).abs() < 4e-7,
                "tanh({x}) = {got}, not {want}"
            );
            assert!(got.abs() <= 1.0 + 1e-6, "tanh({x}) = {got}");
        }
        assert_eq!(tanh(0.0), 0.0);
        assert_eq!(tanh(f32::INFINITY), tanh(100.0));
    }

    /// Pinned: other bits would change the decisions of trained weights.
    #[test]
    fn the_bits_are_the_same_on_every_machine() {
        let bits = [0.1_f32, 0.5, -1.25, 3.0, -9.0].map(|x| tanh(x).to_bits());
        assert_eq!(bits, PINNED);
    }

    const PINNED: [u32; 5] = [1036787387, 1055693471, 3210291486, 1065270248, 3212836863];

    #[test]
    fn shares_sum_to_one_for_any_logits() {
        let mut shares = Vec::new();
        for logits in [[0.0, 0.0, 0.0], [300.0, -300.0, 1.0], [-1e30, -1e30, -1e30]] {
            softmax(&logits, &mut shares);
            let total: f64 = shares.iter().sum();
            assert!((total - 1.0).abs() < 1e-12, "{logits:?}: {shares:?}");
        }
        softmax(&[0.0, libm::logf(3.0)], &mut shares);
        assert!((shares[1] - 0.75).abs() < 1e-7, "{shares:?}");
    }

    #[test]
    fn argmax_is_the_first_of_equals() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(argmax(&[]), 0);
    }
}
