//! Accuracy that depends on the data (SneakPeek section 4, eq. 7 to 11).

/// Writes the posterior mean of the class probabilities into `theta` (eq. 11):
/// (alpha_i + y_i) / sum(alpha + y), the mean of the Dirichlet posterior.
///
/// `prior` holds the Dirichlet parameters alpha (eq. 10) and `counts` the labels y of the
/// nearest neighbours; without counts the result is the prior's mean.
///
/// # Panics
/// Counts of another length than the prior.
pub fn posterior_into(prior: &[f64], counts: Option<&[u32]>, theta: &mut Vec<f64>) {
    theta.clear();
    theta.extend_from_slice(prior);
    if let Some(counts) = counts {
        assert_eq!(prior.len(), counts.len(), "one count per class");
        for (theta, &count) in theta.iter_mut().zip(counts) {
            *theta += f64::from(count);
        }
    }
    let sum: f64 = theta.iter().sum();
    for theta in theta {
        *theta /= sum;
    }
}

/// As [`posterior_into`], into a new vector.
pub fn posterior(prior: &[f64], counts: Option<&[u32]>) -> Vec<f64> {
    let mut theta = Vec::new();
    posterior_into(prior, counts, &mut theta);
    theta
}

/// Accuracy expected for class probabilities theta (eq. 9): sum of theta_i * recall_i. With
/// the test set's frequencies as theta it is the profiled accuracy (eq. 7).
pub fn expected(theta: &[f64], recall: &[f64]) -> f64 {
    theta
        .iter()
        .zip(recall)
        .map(|(theta, recall)| theta * recall)
        .sum()
}

/// The class that theta makes more likely than all others together (section 5.3.2:
/// theta_i > 0.5), if there is one.
pub fn label(theta: &[f64]) -> Option<usize> {
    theta.iter().position(|&share| share > 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn profiled_accuracy_is_the_confusion_matrix_trace() {
        // Z = [[8, 2], [3, 27]]. Eq. 7: (8 + 27) / 40 = 0.875.
        // Eq. 8: frequencies 10/40, 30/40; recalls 8/10, 27/30;
        // 0.25 * 0.8 + 0.75 * 0.9 = 0.2 + 0.675 = 0.875.
        close(expected(&[0.25, 0.75], &[0.8, 0.9]), 0.875);
    }

    #[test]
    fn posterior_of_the_papers_example() {
        // k = 5, two neighbours "no fall", three "fall": y = (2, 3). Jeffreys: alpha = 0.5.
        // (0.5 + 2) / 6 = 0.41667, (0.5 + 3) / 6 = 0.58333.
        let theta = posterior(&[0.5, 0.5], Some(&[2, 3]));
        close(theta[0], 2.5 / 6.0);
        close(theta[1], 3.5 / 6.0);
        // 0.41667 * 0.9 + 0.58333 * 0.6 = 0.375 + 0.35 = 0.725.
        close(expected(&theta, &[0.9, 0.6]), 0.725);
        assert_eq!(label(&theta), Some(1));
    }

    #[test]
    fn without_evidence_the_prior_decides() {
        // Weakly informative prior (0.8, 0.1, 0.1) sums to 1 and is its own mean.
        let theta = posterior(&[0.8, 0.1, 0.1], None);
        close(theta[0], 0.8);
        // Strongly informative (6, 2), one neighbour of class 1: (6, 3) / 9.
        let theta = posterior(&[6.0, 2.0], Some(&[0, 1]));
        close(theta[0], 6.0 / 9.0);
        close(theta[1], 3.0 / 9.0);
    }

    #[test]
    fn no_label_without_a_majority() {
        assert_eq!(label(&[0.4, 0.35, 0.25]), None);
        // Exactly one half is not above it.
        assert_eq!(label(&[0.5, 0.5]), None);
    }
}
