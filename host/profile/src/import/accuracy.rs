//! A table of accuracies by model: JSON, CSV, or the artifact's Python dictionary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::csv_table::CsvTable;
use super::error::ImportError;
use super::layout::has_extension;
use crate::error::ProfileFileError;
use crate::json::parse;

/// Names of such a table by default.
const NAMES: [&str; 4] = [
    "accuracy.csv",
    "accuracy.json",
    "image_models.py",
    "seq_models.py",
];

/// Folders that are searched for it: that of the latencies and two above.
const FOLDERS: usize = 3;

/// Accuracies, 0 to 1, and their file.
pub(super) struct AccuracyTable {
    file: PathBuf,
    by_model: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AccuracyJson {
    ByName(BTreeMap<String, f64>),
    Listed(Vec<NamedAccuracy>),
}

#[derive(Deserialize)]
struct NamedAccuracy {
    #[serde(alias = "variant", alias = "model")]
    name: String,
    accuracy: f64,
}

// === impl AccuracyTable ===

impl AccuracyTable {
    /// The tables in the folder of the latencies and in those above it, nearest first.
    pub(super) fn find(folder: &Path) -> Result<Self, ImportError> {
        let folder = folder
            .canonicalize()
            .map_err(|error| ProfileFileError::io(folder, error))?;
        let files: Vec<PathBuf> = folder
            .ancestors()
            .take(FOLDERS)
            .flat_map(|above| NAMES.map(|name| above.join(name)))
            .filter(|file| file.is_file())
            .collect();
        match files.as_slice() {
            [] => {
                let reason = format!(
                    "no table of accuracies next to it or above it ({}); name one with `--accuracy`",
                    NAMES.join(", ")
                );
                Err(ImportError::layout(&folder, reason))
            }
            // The artifact has one for images and one for text: together they are one table.
            [first, more @ ..] => {
                let mut all = Self::read(first)?;
                for file in more {
                    for (model, accuracy) in Self::read(file)?.by_model {
                        all.by_model.entry(model).or_insert(accuracy);
                    }
                }
                Ok(all)
            }
        }
    }

    pub(super) fn read(file: &Path) -> Result<Self, ImportError> {
        let text =
            std::fs::read_to_string(file).map_err(|error| ProfileFileError::io(file, error))?;
        let (names, values): (Vec<String>, Vec<f64>) = if has_extension(file, "csv") {
            return Self::csv(file, &text);
        } else if has_extension(file, "py") {
            python(file, &text)?.into_iter().unzip()
        } else {
            match parse(file, &text)? {
                AccuracyJson::ByName(by_name) => by_name.into_iter().unzip(),
                AccuracyJson::Listed(list) => {
                    list.into_iter().map(|e| (e.name, e.accuracy)).unzip()
                }
            }
        };
        let mut by_model = BTreeMap::new();
        for (name, share) in names.into_iter().zip(shares(&values)) {
            let Some(share) = share else {
                let reason = "must be a share or percent";
                return Err(ProfileFileError::field(file, name, reason).into());
            };
            by_model.insert(name, share);
        }
        Ok(Self {
            file: file.to_path_buf(),
            by_model,
        })
    }

    /// The first file that they come from.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn of(&self, model: &str) -> Result<f64, ImportError> {
        let known = self.by_model.get(model).copied();
        known.ok_or_else(|| {
            ImportError::layout(&self.file, format!("has no accuracy of model `{model}`"))
        })
    }

    fn csv(file: &Path, text: &str) -> Result<Self, ImportError> {
        let table = CsvTable::parse(file, text)?;
        let mut by_model = BTreeMap::new();
        for record in table.records() {
            let name = record.text("variant").or(record.text("model"));
            let name = name.ok_or_else(|| record.fault("column `variant` is missing or empty"))?;
            let accuracy = record.accuracy()?.ok_or_else(|| {
                record.fault("column `accuracy` or `accuracy_percent` is missing or empty")
            })?;
            by_model.insert(name.to_owned(), accuracy);
        }
        Ok(Self {
            file: file.to_path_buf(),
            by_model,
        })
    }
}

/// Shares, 0 to 1. The values are percentages if any of them is above 1, otherwise shares already.
/// `None` for a value that is neither.
pub(super) fn shares(values: &[f64]) -> Vec<Option<f64>> {
    let whole = if values.iter().any(|&value| value > 1.0) {
        100.0
    } else {
        1.0
    };
    let share = |&value: &f64| (0.0..=whole).contains(&value).then_some(value / whole);
    values.iter().map(share).collect()
}

/// Lines `"name": number,` of a dictionary; everything else is skipped.
fn python(file: &Path, text: &str) -> Result<Vec<(String, f64)>, ImportError> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let name = name.trim().trim_matches(['"', '\'']);
        let value = value.trim().trim_end_matches(['}', ',']).trim();
        let Ok(value) = value.parse() else {
            let reason = format!("`{name}`: `{value}` is no number");
            return Err(ImportError::line(file, number, reason));
        };
        found.push((name.to_owned(), value));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn percentages_and_shares_are_told_apart() {
        assert_eq!(shares(&[77.5, 0.5]), [Some(0.775), Some(0.005)]);
        assert_eq!(shares(&[0.775, 1.0]), [Some(0.775), Some(1.0)]);
        assert_eq!(shares(&[177.0, -1.0, f64::NAN]), [None; 3]);
    }

    #[test]
    fn a_dictionary_is_read_line_by_line() {
        let text = "table = {\n    \"a\":69.8, #note: x\n    'b': 77.1,\n}\n";
        let found = python(Path::new("m.py"), text).unwrap();
        assert_eq!(found, [("a".to_owned(), 69.8), ("b".to_owned(), 77.1)]);
        let error = python(Path::new("m.py"), "x = {\n 'a': high,\n").unwrap_err();
        assert_eq!(error.to_string(), "m.py:2: `a`: `high` is no number");
    }
}
