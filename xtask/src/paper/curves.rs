//! Recorded learning curves: figures about the course of a training, which is too long for a suite.
//! Their files name the command that made them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::results::{Estimate, Results};

/// Trainings whose curves are claimed about. Files are relative to the figure's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Curves {
    /// Column with the points, such as `slots`.
    pub(crate) by: String,
    /// Its values that are compared.
    pub(crate) at: Vec<u64>,
    /// By name, the curves of one kind of training from different seeds: comma-separated, with a
    /// head line.
    pub(crate) of: BTreeMap<String, Vec<PathBuf>>,
}

/// The lines of one file.
struct Curve {
    columns: Vec<String>,
    lines: Vec<Vec<Option<f64>>>,
}

// === impl Curves ===

impl Curves {
    pub(crate) fn check(&self) -> Result<()> {
        if self.at.is_empty() || self.of.is_empty() {
            bail!("curves: must have values of `{}` and trainings", self.by);
        }
        match self.of.iter().find(|(_, files)| files.is_empty()) {
            Some((name, _)) => bail!("curves.of.{name}: must have files"),
            None => Ok(()),
        }
    }

    /// Every column as a metric: its mean over the seeds, with their standard deviation.
    pub(crate) fn results(&self, folder: &Path) -> Result<Results> {
        let mut read = BTreeMap::new();
        for (name, files) in &self.of {
            let curves = files.iter().map(|file| Curve::read(&folder.join(file)));
            read.insert(name, curves.collect::<Result<Vec<_>>>()?);
        }
        let mut results = Results::default();
        for &at in &self.at {
            let point = format!("{}={at}", self.by);
            for (name, curves) in &read {
                let estimates = self.estimates(at, curves);
                let estimates = estimates.with_context(|| format!("curves.of.{name}: {point}"))?;
                results.add(&point, name, estimates);
            }
        }
        Ok(results)
    }

    fn estimates(&self, at: u64, curves: &[Curve]) -> Result<BTreeMap<String, Estimate>> {
        let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for curve in curves {
            let line = curve.line(&self.by, at)?;
            for (name, value) in curve.columns.iter().zip(line) {
                if let Some(value) = value {
                    columns.entry(name.clone()).or_default().push(*value);
                }
            }
        }
        // A column that some curves lack at this point would be a mean over other seeds.
        columns.retain(|_, values| values.len() == curves.len());
        let estimate = |(name, values): (String, Vec<f64>)| (name, spread(&values));
        Ok(columns.into_iter().map(estimate).collect())
    }
}

// === impl Curve ===

impl Curve {
    fn read(file: &Path) -> Result<Self> {
        let at = || file.display().to_string();
        let text = fs::read_to_string(file).with_context(at)?;
        Self::parse(&text).with_context(at)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let head = lines.next().context("has no head line")?;
        let columns: Vec<String> = head.split(',').map(str::to_owned).collect();
        let lines = lines.map(|line| {
            let cells = line.split(',').map(|cell| match cell {
                "" => Ok(None),
                number => Ok(Some(number.parse::<f64>()?)),
            });
            let cells: Vec<Option<f64>> = cells.collect::<Result<_>>()?;
            if cells.len() != columns.len() {
                bail!("`{line}`: has {} of {} columns", cells.len(), columns.len());
            }
            Ok(cells)
        });
        Ok(Self {
            lines: lines.collect::<Result<_>>()?,
            columns,
        })
    }

    fn line(&self, by: &str, at: u64) -> Result<&[Option<f64>]> {
        let column = self.columns.iter().position(|column| column == by);
        let column = column.with_context(|| format!("no column `{by}`"))?;
        let is_there = |line: &&Vec<Option<f64>>| line[column] == Some(at as f64);
        let line = self.lines.iter().find(is_there).map(Vec::as_slice);
        line.with_context(|| format!("no line with {by} {at}"))
    }
}

/// Mean and standard deviation; a single value has none.
fn spread(values: &[f64]) -> Estimate {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half_width = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    Estimate { mean, half_width }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(at: &[u64], files: &[PathBuf]) -> Curves {
        Curves {
            by: "slots".to_owned(),
            at: at.to_vec(),
            of: BTreeMap::from([("rl".to_owned(), files.to_vec())]),
        }
    }

    #[test]
    fn seeds_are_brought_together_by_column() {
        let folder = tempfile::tempdir().unwrap();
        let head = "slots,goodput,checked\n";
        for (name, lines) in [
            ("1.csv", "10,0.5,\n20,0.6,1\n"),
            ("2.csv", "10,0.7,2\n20,0.9,3\n"),
        ] {
            fs::write(folder.path().join(name), format!("{head}{lines}")).unwrap();
        }
        let files = [PathBuf::from("1.csv"), PathBuf::from("2.csv")];
        let results = curves(&[10, 20], &files).results(folder.path()).unwrap();
        let points: Vec<&str> = results.points().collect();
        assert_eq!(points, ["slots=10", "slots=20"]);
        let mean = |point, metric| results.sample(point, "rl", metric).map(|of| of.mean);
        assert!((mean("slots=10", "goodput").unwrap() - 0.6).abs() < 1e-12);
        assert_eq!(mean("slots=20", "checked"), Ok(2.0));
        let lacking = mean("slots=10", "checked").unwrap_err();
        assert!(lacking.contains("no metric `checked`"), "{lacking}");
        let (_, _, estimates) = results.rows().next().unwrap();
        let half = estimates["goodput"].half_width.unwrap();
        assert!((half - 0.02_f64.sqrt()).abs() < 1e-12, "{half}");
    }

    #[test]
    fn missing_columns_and_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1.csv"), "slots,goodput\n10,0.5\n").unwrap();
        fs::write(folder.path().join("2.csv"), "slots,goodput\n10\n").unwrap();
        let error = |at: u64, file: &str| {
            let curves = curves(&[at], &[PathBuf::from(file)]);
            format!("{:#}", curves.results(folder.path()).unwrap_err())
        };
        assert!(error(30, "1.csv").contains("no line with slots 30"));
        assert!(error(10, "2.csv").contains("has 1 of 2 columns"));
        assert!(error(10, "3.csv").contains("3.csv"));
        assert!(curves(&[], &[]).check().is_err());
    }
}
