//! Confusion matrices as shares. The simulator draws answers from them. Policies do not see them:
//! SneakPeek's eq. 7 needs the recall, which is their diagonal.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Largest distance of a row's sum from 1, and of the diagonal from a rounded recall.
const TOLERANCE: f64 = 1e-3;

/// Shares of the predicted classes among the inputs of each true class: one row per true class,
/// in the app's order, each adding up to 1 (the matrix Z of SneakPeek eq. 7, normalised by row).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Confusion {
    rows: Vec<Vec<f64>>,
}

/// An invalid matrix: the first class at fault.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("class {class}: {reason}")]
pub struct ConfusionError {
    /// The true class.
    pub class: usize,
    /// The fault of its row.
    pub reason: String,
}

// === impl Confusion ===

impl Confusion {
    /// From counts, rows by true class.
    ///
    /// # Errors
    /// It is not square, or has a class of which nothing was counted.
    pub fn from_counts(counts: &[Vec<u64>]) -> Result<Self, ConfusionError> {
        let classes = counts.len();
        let row_of = |(class, row): (usize, &Vec<u64>)| {
            if row.len() != classes {
                return Err(ConfusionError::width(class, classes, row.len()));
            }
            // In f64: a hostile count must not overflow the sum.
            let all: f64 = row.iter().map(|&count| count as f64).sum();
            if all <= 0.0 {
                let reason = "no input of it was counted".to_owned();
                return Err(ConfusionError { class, reason });
            }
            Ok(row.iter().map(|&count| count as f64 / all).collect())
        };
        let rows = counts.iter().enumerate().map(row_of);
        Ok(Self {
            rows: rows.collect::<Result<_, _>>()?,
        })
    }

    /// Shares of the predicted classes among the inputs of a class.
    pub fn row(&self, class: usize) -> Option<&[f64]> {
        self.rows.get(class).map(Vec::as_slice)
    }

    /// Share of right predictions per true class.
    pub fn recall(&self) -> Vec<f64> {
        let diagonal = self.rows.iter().enumerate();
        diagonal
            .map(|(class, row)| row.get(class).copied().unwrap_or_default())
            .collect()
    }

    /// The wrong prediction for an input of `class`: the class at the share `at`, in [0, 1), of
    /// the row's other entries. None if the row has no other entry above 0.
    pub fn wrong(&self, class: usize, at: f64) -> Option<usize> {
        let row = self.row(class)?;
        let others = || {
            let entries = row.iter().copied().enumerate();
            entries.filter(|&(predicted, share)| predicted != class && share > 0.0)
        };
        let sum: f64 = others().map(|(_, share)| share).sum();
        let mut left = at * sum;
        let found = others().find(|&(_, share)| {
            left -= share;
            left < 0.0
        });
        // Rounding may leave a rest at the end of the row.
        found
            .or_else(|| others().next_back())
            .map(|(predicted, _)| predicted)
    }

    /// Checks that the rows are distributions over `recall.len()` classes with this diagonal.
    ///
    /// # Errors
    /// The first class with an invalid row.
    pub fn validate(&self, recall: &[f64]) -> Result<(), ConfusionError> {
        let classes = recall.len();
        if self.rows.len() != classes {
            let class = classes.min(self.rows.len());
            let reason = format!("{} rows for {classes} classes", self.rows.len());
            return Err(ConfusionError { class, reason });
        }
        for (class, (row, &recall)) in self.rows.iter().zip(recall).enumerate() {
            let fail = |reason| Err(ConfusionError { class, reason });
            if row.len() != classes {
                return Err(ConfusionError::width(class, classes, row.len()));
            }
            let sum: f64 = row.iter().sum();
            let are_shares = row.iter().all(|share| (0.0..=1.0).contains(share));
            if !are_shares || (sum - 1.0).abs() > TOLERANCE {
                return fail(format!(
                    "its row must be shares that add up to 1, not {sum}"
                ));
            }
            if (row[class] - recall).abs() > TOLERANCE {
                let found = row[class];
                return fail(format!("its row says {found} for its recall, {recall}"));
            }
        }
        Ok(())
    }
}

// === impl ConfusionError ===

impl ConfusionError {
    fn width(class: usize, classes: usize, found: usize) -> Self {
        let reason = format!("its row has {found} entries for {classes} classes");
        Self { class, reason }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn confusion() -> Confusion {
        Confusion::from_counts(&[vec![6, 3, 1], vec![0, 4, 0], vec![1, 1, 2]]).unwrap()
    }

    #[test]
    fn rows_are_shares_of_the_true_class() {
        assert_eq!(confusion().row(0), Some(&[0.6, 0.3, 0.1][..]));
        assert_eq!(confusion().recall(), [0.6, 1.0, 0.5]);
        assert_eq!(confusion().row(3), None);
    }

    #[test]
    fn a_wrong_prediction_is_drawn_from_the_rest_of_the_row() {
        let predicted = |class, at| confusion().wrong(class, at);
        assert_eq!(predicted(0, 0.0), Some(1));
        assert_eq!(predicted(0, 0.74), Some(1));
        assert_eq!(predicted(0, 0.76), Some(2));
        assert_eq!(predicted(0, 0.999_999_999_999), Some(2));
        assert_eq!(predicted(1, 0.5), None, "it has no wrong prediction");
        assert_eq!(predicted(2, 0.49), Some(0));
        assert_eq!(predicted(2, 0.51), Some(1));
    }

    #[test]
    fn an_invalid_matrix_names_its_class() {
        let refused = |counts: &[Vec<u64>]| Confusion::from_counts(counts).unwrap_err().to_string();
        assert_eq!(
            refused(&[vec![1, 2], vec![0, 0]]),
            "class 1: no input of it was counted"
        );
        assert_eq!(
            refused(&[vec![1, 2], vec![1]]),
            "class 1: its row has 1 entries for 2 classes"
        );
        let invalid = |rows: &[&[f64]], recall: &[f64]| {
            let rows = rows.iter().map(|row| row.to_vec()).collect();
            Confusion { rows }.validate(recall).unwrap_err().to_string()
        };
        assert_eq!(
            invalid(&[&[0.5, 0.5], &[0.5, 0.4]], &[0.5, 0.4]),
            "class 1: its row must be shares that add up to 1, not 0.9"
        );
        assert_eq!(
            invalid(&[&[0.5, 0.5], &[0.5, 0.5]], &[0.7, 0.5]),
            "class 0: its row says 0.5 for its recall, 0.7"
        );
        assert_eq!(
            invalid(&[&[1.0]], &[1.0, 1.0]),
            "class 1: 1 rows for 2 classes"
        );
    }
}
