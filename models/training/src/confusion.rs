//! Confusion matrix, accuracy and recall.

/// Counts of (true class, predicted class), rows by true class.
///
/// SneakPeek's profile of a model is this matrix Z (eq. 7): the recall of class i is
/// `z_ii / sum_j z_ij`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    counts: Vec<Vec<u64>>,
}

// === impl Confusion ===

impl Confusion {
    /// An empty matrix for `classes` classes.
    pub fn new(classes: usize) -> Self {
        Self {
            counts: vec![vec![0; classes]; classes],
        }
    }

    /// Counts one prediction; both must be below the number of classes.
    pub fn record(&mut self, truth: usize, predicted: usize) {
        self.counts[truth][predicted] += 1;
    }

    /// The matrix, rows by true class.
    pub fn rows(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// Share of right predictions among all; 0 without any record.
    pub fn accuracy(&self) -> f64 {
        let right: u64 = (0..self.counts.len()).map(|i| self.counts[i][i]).sum();
        let all: u64 = self.counts.iter().flatten().sum();
        ratio(right, all)
    }

    /// Share of right predictions per true class; 0 for a class without a record.
    pub fn recall(&self) -> Vec<f64> {
        self.counts
            .iter()
            .enumerate()
            .map(|(i, row)| ratio(row[i], row.iter().sum()))
            .collect()
    }

    /// Share of each true class among all records.
    pub fn frequencies(&self) -> Vec<f64> {
        let all: u64 = self.counts.iter().flatten().sum();
        self.counts
            .iter()
            .map(|row| ratio(row.iter().sum(), all))
            .collect()
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_and_recall_follow_the_counts() {
        let mut confusion = Confusion::new(2);
        for (truth, predicted) in [(0, 0), (0, 0), (0, 0), (0, 1), (1, 0), (1, 1)] {
            confusion.record(truth, predicted);
        }
        assert_eq!(confusion.rows(), [[3, 1], [1, 1]]);
        assert!((confusion.accuracy() - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!(confusion.recall(), [0.75, 0.5]);
        assert_eq!(confusion.frequencies(), [4.0 / 6.0, 2.0 / 6.0]);
    }

    #[test]
    fn an_empty_matrix_has_no_accuracy() {
        assert_eq!(Confusion::new(3).accuracy(), 0.0);
        assert_eq!(Confusion::new(3).recall(), [0.0; 3]);
    }
}
