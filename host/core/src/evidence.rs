//! Class probabilities of a request from the labels of its neighbours (SneakPeek section 4).

/// Posterior mean of the class probabilities under a Dirichlet prior, given neighbour
/// counts (SneakPeek eq. 9): `theta_i = (alpha_i + y_i) / sum(alpha + y)`.
///
/// `counts` may be empty: then this is the prior's mean.
pub fn posterior(prior: &[f64], counts: &[u32], theta: &mut Vec<f64>) {
    theta.clear();
    theta.extend_from_slice(prior);
    for (t, &count) in theta.iter_mut().zip(counts) {
        *t += f64::from(count);
    }
    let total: f64 = theta.iter().sum();
    for t in theta.iter_mut() {
        *t /= total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jeffreys_prior_with_five_neighbours() {
        // alpha = 0.5 each, y = (4, 1, 0): (4.5, 1.5, 0.5) / 6.5.
        let mut theta = Vec::new();
        posterior(&[0.5; 3], &[4, 1, 0], &mut theta);
        for (got, want) in theta.iter().zip([4.5 / 6.5, 1.5 / 6.5, 0.5 / 6.5]) {
            assert!((got - want).abs() < 1e-12);
        }
        posterior(&[1.0, 3.0], &[], &mut theta);
        assert_eq!(theta, [0.25, 0.75]);
    }
}
