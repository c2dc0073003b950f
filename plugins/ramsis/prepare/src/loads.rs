//! The loads of a set's tables.

use crate::error::PrepareError;

/// Expected accuracies of neighbouring tables differ by less (section 6).
pub(crate) const SPACING: f64 = 0.01;

/// The loads of a set's tables, in requests per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Loads {
    /// These loads.
    Each(Vec<f64>),
    /// From the first to the second, so close that expected accuracies of neighbouring tables
    /// differ by less than 0.01; at least 1 request per second apart.
    Spaced(f64, f64),
}

// === impl Loads ===

impl Loads {
    /// The first loads, ascending.
    pub(crate) fn begin(&self) -> Result<Vec<f64>, PrepareError> {
        let mut loads = match self {
            Self::Each(loads) => loads.clone(),
            Self::Spaced(from, to) if from < to => vec![*from, *to],
            Self::Spaced(..) => {
                let reason = "must be from a load to a higher load";
                return Err(PrepareError::spec("loads", reason));
            }
        };
        if loads.is_empty() || !loads.iter().all(|load| *load > 0.0 && load.is_finite()) {
            let reason = "must be one or more numbers above 0";
            return Err(PrepareError::spec("loads", reason));
        }
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        Ok(loads)
    }

    /// The loads to add between neighbours (load, expected accuracy) that are too far apart.
    pub(crate) fn between(&self, made: &[(f64, f64)]) -> Vec<f64> {
        if matches!(self, Self::Each(_)) {
            return Vec::new();
        }
        let pairs = made.windows(2);
        let halves = pairs.filter_map(|pair| {
            let ((below, worse), (above, better)) = (pair[0], pair[1]);
            let middle = (0.5 * (below + above)).round();
            let apart = (worse - better).abs() >= SPACING;
            (apart && below < middle && middle < above).then_some(middle)
        });
        halves.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn neighbours_too_far_apart_get_one_between() {
        let spaced = Loads::Spaced(100.0, 400.0);
        assert_eq!(spaced.begin().unwrap(), [100.0, 400.0]);
        let made = [(100.0, 0.80), (200.0, 0.795), (400.0, 0.70), (401.0, 0.60)];
        assert_eq!(spaced.between(&made), [300.0]);
        assert!(Loads::Each(vec![100.0]).between(&made).is_empty());
    }

    #[test]
    fn loads_are_sorted_and_must_be_above_0() {
        let each = Loads::Each(vec![3.0, 1.0, 3.0]);
        assert_eq!(each.begin().unwrap(), [1.0, 3.0]);
        for bad in [vec![], vec![0.0], vec![1.0, f64::NAN]] {
            assert!(Loads::Each(bad).begin().is_err());
        }
        assert!(Loads::Spaced(2.0, 2.0).begin().is_err());
    }
}
