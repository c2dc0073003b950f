//! Checks that cards have in common.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::ModelError;
use crate::regular_file;

/// Largest distance of a distribution's sum from 1, and of a rounded figure from its recount.
const TOLERANCE: f64 = 1e-3;

/// Accuracy, recall per class and confusion matrix as a card states them.
pub(super) struct StatedProfile<'a> {
    pub(super) accuracy: f64,
    pub(super) recall: &'a [f64],
    /// Rows by true class; empty if only the other two are known.
    pub(super) confusion: &'a [Vec<u64>],
}

/// Reads a card.
pub(super) fn read_toml<T: DeserializeOwned>(file: &Path) -> Result<T, ModelError> {
    let text = regular_file::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
    toml::from_str(&text).map_err(|source| ModelError::CardSyntax {
        file: file.to_path_buf(),
        source: Box::new(source),
    })
}

/// Refuses everything but a plain file name, so that a card cannot reach outside its folder.
pub(super) fn check_file_name(card: &Path, field: &str, name: &str) -> Result<(), ModelError> {
    if Path::new(name).file_name() == Some(name.as_ref()) {
        return Ok(());
    }
    let reason = format!("`{name}` is not a plain file name");
    Err(ModelError::field(card, field, reason))
}

/// Checks that `shares` has a share per class and that they sum to 1.
pub(super) fn check_distribution(
    file: &Path,
    field: &str,
    shares: &[f64],
    classes: usize,
) -> Result<(), ModelError> {
    if shares.len() != classes {
        let reason = format!("{} entries for {classes} classes", shares.len());
        return Err(ModelError::field(file, field, reason));
    }
    let sum: f64 = shares.iter().sum();
    let valid = |share: &f64| (0.0..=1.0).contains(share);
    if !shares.iter().all(valid) || (sum - 1.0).abs() > TOLERANCE {
        let reason = format!("must be shares that sum to 1, got {shares:?}");
        return Err(ModelError::field(file, field, reason));
    }
    Ok(())
}

/// Checks that a confusion matrix is square and that accuracy and recall follow from it; without a
/// matrix, that both are shares.
pub(super) fn check_profile(
    file: &Path,
    at: &str,
    profile: &StatedProfile<'_>,
    classes: usize,
) -> Result<(), ModelError> {
    let StatedProfile {
        accuracy,
        recall,
        confusion,
    } = *profile;
    if confusion.is_empty() {
        let is_share = |share: &f64| (0.0..=1.0).contains(share);
        if !is_share(&accuracy) {
            let reason = format!("{accuracy} is not between 0 and 1");
            return Err(ModelError::field(file, format!("{at}.accuracy"), reason));
        }
        if recall.len() != classes || !recall.iter().all(is_share) {
            let reason = format!("needs {classes} values between 0 and 1");
            return Err(ModelError::field(file, format!("{at}.recall"), reason));
        }
        return Ok(());
    }
    if confusion.len() != classes || confusion.iter().any(|row| row.len() != classes) {
        let reason = format!("must be {classes} by {classes}");
        return Err(ModelError::field(file, format!("{at}.confusion"), reason));
    }
    // In f64: a hostile count must not overflow the sum.
    let row_sum = |row: &[u64]| row.iter().map(|&count| count as f64).sum::<f64>();
    let all: f64 = confusion.iter().map(|row| row_sum(row)).sum();
    let right: f64 = (0..classes).map(|i| confusion[i][i] as f64).sum();
    let close = |stated: f64, part: f64, whole: f64| {
        (stated - if whole > 0.0 { part / whole } else { 0.0 }).abs() <= TOLERANCE
    };
    if !close(accuracy, right, all) {
        let reason = format!("{accuracy} does not follow from the confusion matrix");
        return Err(ModelError::field(file, format!("{at}.accuracy"), reason));
    }
    let follows = |i: usize| close(recall[i], confusion[i][i] as f64, row_sum(&confusion[i]));
    if recall.len() != classes || !(0..classes).all(follows) {
        let reason = format!("{recall:?} does not follow from the confusion matrix");
        return Err(ModelError::field(file, format!("{at}.recall"), reason));
    }
    Ok(())
}
