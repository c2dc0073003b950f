//! The density of a softmax of normal variables on the simplex (Proposition 2, eq. 9).
//!
//! With z normal around f with deviation sigma in each of n directions and y = softmax(z), the
//! density of y with respect to its first n - 1 coordinates is, with q_i = log y_i - f_i,
//!
//! `exp((sum q)^2 / (2 n sigma^2) - sum q^2 / (2 sigma^2)) / (sqrt(n) (sigma sqrt(2 pi))^(n-1) prod y)`
//!
//! The exponent is minus the variance of the q_i around their mean: a shift of all of f changes
//! nothing, as in the softmax.

use std::f64::consts::TAU;

/// The logarithm of eq. 9, from the logarithms of the shares.
#[must_use]
pub fn log_density(log_shares: &[f32], means: &[f32], sigma: f64) -> f64 {
    let n = log_shares.len() as f64;
    let q = || {
        let pairs = log_shares.iter().zip(means);
        pairs.map(|(&log_y, &f)| f64::from(log_y) - f64::from(f))
    };
    let (sum, squares) = q().fold((0.0, 0.0), |(sum, squares), q| (sum + q, squares + q * q));
    let logs: f64 = log_shares.iter().map(|&log_y| f64::from(log_y)).sum();
    let spread = 0.5 / (sigma * sigma);
    spread * (sum * sum / n - squares)
        - 0.5 * libm::log(n)
        - 0.5 * (n - 1.0) * libm::log(TAU * sigma * sigma)
        - logs
}

/// Adds `scale` times the gradient of [`log_density`] with respect to the means:
/// (q_i - mean of q) / sigma^2.
pub fn add_gradient(
    log_shares: &[f32],
    means: &[f32],
    sigma: f64,
    scale: f32,
    gradient: &mut [f32],
) {
    let q = || {
        let pairs = log_shares.iter().zip(means);
        pairs.map(|(&log_y, &f)| log_y - f)
    };
    let mean = q().sum::<f32>() / log_shares.len() as f32;
    let factor = scale / (sigma * sigma) as f32;
    for (slope, q) in gradient.iter_mut().zip(q()) {
        *slope += factor * (q - mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn density(shares: &[f64], means: &[f32], sigma: f64) -> f64 {
        let logs: Vec<f32> = shares.iter().map(|y| y.ln() as f32).collect();
        log_density(&logs, means, sigma).exp()
    }

    /// The density integrates to 1 over the simplex.
    #[test]
    fn it_integrates_to_one_in_two_dimensions() {
        for (means, sigma) in [([0.0, 0.0], 0.698), ([0.7, -0.4], 0.5), ([2.0, 0.5], 1.2)] {
            let steps = 200_000;
            let h = 1.0 / f64::from(steps);
            let points = (0..steps).map(|i| (f64::from(i) + 0.5) * h);
            let integral: f64 = points
                .map(|y| density(&[y, 1.0 - y], &means, sigma) * h)
                .sum();
            assert!(
                (integral - 1.0).abs() < 1e-4,
                "{means:?} {sigma}: {integral}"
            );
        }
    }

    #[test]
    fn it_integrates_to_one_in_three_dimensions() {
        for (means, sigma) in [([0.0, 0.0, 0.0], 0.698), ([0.8, -0.2, 0.1], 0.6)] {
            let steps = 1_500;
            let h = 1.0 / f64::from(steps);
            let mut integral = 0.0;
            for i in 0..steps {
                let a = (f64::from(i) + 0.5) * h;
                // The rest of the simplex in as many steps, so that its edge cuts none.
                let room = 1.0 - a;
                for j in 0..steps {
                    let b = room * (f64::from(j) + 0.5) * h;
                    let shares = [a, b, room - b];
                    integral += density(&shares, &means, sigma) * h * h * room;
                }
            }
            assert!(
                (integral - 1.0).abs() < 1e-3,
                "{means:?} {sigma}: {integral}"
            );
        }
    }

    /// The integral over a part of the simplex equals the share of softmaxes of normal draws in it.
    #[test]
    fn it_is_the_density_of_the_softmax_of_normal_draws() {
        use switchyard_sim::random::{Purpose, Stream};
        let (means, sigma) = ([0.5_f32, -0.3], 0.698);
        let mut stream = Stream::new(1, Purpose::Learning, 0);
        let draws = 400_000;
        let below = (0..draws).filter(|_| {
            let z = means.map(|f| f64::from(f) + sigma * stream.normal());
            1.0 / (1.0 + (z[1] - z[0]).exp()) < 0.4
        });
        let drawn = below.count() as f64 / f64::from(draws);
        let steps = 40_000;
        let h = 0.4 / f64::from(steps);
        let points = (0..steps).map(|i| (f64::from(i) + 0.5) * h);
        let integral: f64 = points
            .map(|y| density(&[y, 1.0 - y], &means, sigma) * h)
            .sum();
        assert!((integral - drawn).abs() < 3e-3, "{integral}, drawn {drawn}");
    }

    #[test]
    fn the_gradient_equals_finite_differences() {
        let shares = [0.5_f32, 0.2, 0.2, 0.1];
        let logs: Vec<f32> = shares.iter().map(|y| y.ln()).collect();
        let means = [0.3_f32, -0.2, 0.9, 0.0];
        let sigma = 0.698;
        let mut gradient = [1.0; 4];
        add_gradient(&logs, &means, sigma, 2.0, &mut gradient);
        for i in 0..4 {
            let at = |step: f32| {
                let mut moved = means;
                moved[i] += step;
                log_density(&logs, &moved, sigma)
            };
            let slope = (at(0.01) - at(-0.01)) / 0.02;
            let got = f64::from(gradient[i] - 1.0) / 2.0;
            assert!((slope - got).abs() < 1e-3, "{i}: {got}, not {slope}");
        }
    }
}
