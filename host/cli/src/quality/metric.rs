//! Metrics of numbers.

use std::cmp::Ordering;

/// Coefficient of determination: 1 for exact answers, 0 for the labels' mean; the mean over the
/// numbers of a row. `None` if the labels of a number are all equal.
pub(super) fn r2(labels: &[Vec<f64>], answers: &[Vec<f64>]) -> Option<f64> {
    let width = labels.first()?.len();
    let of_number = |at: usize| {
        let column = |rows: &[Vec<f64>]| rows.iter().map(|row| row[at]).collect::<Vec<f64>>();
        let (labels, answers) = (column(labels), column(answers));
        let mean = mean(&labels);
        let spread: f64 = labels.iter().map(|label| (label - mean).powi(2)).sum();
        let rest = labels.iter().zip(&answers);
        let rest: f64 = rest.map(|(label, answer)| (label - answer).powi(2)).sum();
        (spread > 0.0).then_some(1.0 - rest / spread)
    };
    let all: Option<Vec<f64>> = (0..width).map(of_number).collect();
    all.map(|all| mean(&all))
}

/// Spearman's rank correlation. `None` if the labels are all equal; 0 if the answers are, which say
/// nothing about the labels.
pub(super) fn spearman(labels: &[f64], answers: &[f64]) -> Option<f64> {
    let (labels, answers) = (ranks(labels), ranks(answers));
    let (a, b) = (mean(&labels), mean(&answers));
    let of = |x: &[f64], y: &[f64], a: f64, b: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - a) * (y - b)).sum()
    };
    let (labels_spread, answers_spread) =
        (of(&labels, &labels, a, a), of(&answers, &answers, b, b));
    if labels_spread <= 0.0 {
        return None;
    }
    if answers_spread <= 0.0 {
        return Some(0.0);
    }
    Some(of(&labels, &answers, a, b) / (labels_spread * answers_spread).sqrt())
}

/// Cosine of the angle between two vectors; `None` if one has length 0.
pub(super) fn cosine(a: &[f64], b: &[f64]) -> Option<f64> {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (product(a, a) * product(b, b)).sqrt();
    (lengths > 0.0).then(|| product(a, b) / lengths)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The rank of each value; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].partial_cmp(&values[b]).unwrap_or(Ordering::Equal));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = from as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|&at| ranks[at] = rank);
        from += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f64>, wanted: f64) {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
    }

    /// The figures are those of scipy.stats.spearmanr.
    #[test]
    fn ranks_are_correlated_with_ties() {
        close(spearman(&[1.0, 2.0, 3.0], &[10.0, 100.0, 1000.0]), 1.0);
        close(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        let labels = [1.0, 2.0, 2.0, 4.0, 5.0];
        close(
            spearman(&labels, &[5.0, 6.0, 7.0, 8.0, 7.0]),
            0.763_157_894_736_842,
        );
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[7.0, 7.0]), Some(0.0));
    }

    /// The figures are those of sklearn.metrics.r2_score.
    #[test]
    fn r2_is_the_explained_share_of_the_variance() {
        let rows = |values: &[f64]| values.iter().map(|&v| vec![v]).collect::<Vec<_>>();
        let labels = rows(&[3.0, -0.5, 2.0, 7.0]);
        close(
            r2(&labels, &rows(&[2.5, 0.0, 2.0, 8.0])),
            0.948_608_137_044_968,
        );
        close(r2(&labels, &rows(&[2.875; 4])), 0.0);
        assert!(r2(&labels, &rows(&[9.0; 4])).unwrap() < 0.0);
        assert_eq!(r2(&rows(&[1.0, 1.0]), &rows(&[1.0, 2.0])), None);
        let two = [vec![0.5, 1.0], vec![-1.0, 1.5], vec![7.0, -6.0]];
        let answers = [vec![0.0, 2.0], vec![-1.0, 2.0], vec![8.0, -5.0]];
        close(r2(&two, &answers), 0.950_728_372_682_202);
    }

    #[test]
    fn a_vector_without_length_has_no_angle() {
        close(cosine(&[1.0, 0.0], &[1.0, 1.0]), 0.5_f64.sqrt());
        assert_eq!(cosine(&[0.0], &[1.0]), None);
    }
}
