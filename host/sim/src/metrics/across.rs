//! Means over seeds with their confidence intervals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::report::{PartReport, Report};

/// A mean over runs with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean over the runs that have the metric.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval, by Student's t; absent for one run.
    pub half_width: Option<f64>,
    /// Runs counted.
    pub runs: usize,
}

/// Every metric of several runs of one policy, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Estimates(pub BTreeMap<String, Estimate>);

/// The metrics of one app, or of one phase of the workload, over several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartEstimates {
    /// As in [`PartReport`].
    pub name: String,
    /// Its metrics.
    pub estimates: Estimates,
}

// === impl Estimate ===

impl Estimate {
    /// Of some values; none without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = values.len();
        if runs == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / runs as f64;
        let half_width = (runs > 1).then(|| {
            let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
            let error = (squares / (runs - 1) as f64 / runs as f64).sqrt();
            t_quantile_975(runs - 1) * error
        });
        Some(Self {
            mean,
            half_width,
            runs,
        })
    }
}

// === impl Estimates ===

impl Estimates {
    /// Of runs that differ only in their seed.
    pub fn over<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Self {
        Self::of(reports.into_iter().map(Report::scalars))
    }

    /// The values behind the estimates of runs that differ only in their seed.
    pub fn by_seed<'a>(
        reports: impl IntoIterator<Item = &'a Report>,
    ) -> BTreeMap<String, Vec<Option<f64>>> {
        let mut values: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        for (name, value) in reports.into_iter().flat_map(Report::scalars) {
            values.entry(name.to_owned()).or_default().push(value);
        }
        values
    }

    /// Of one list of named values per run.
    fn of(runs: impl Iterator<Item = Vec<(&'static str, Option<f64>)>>) -> Self {
        let mut values: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        for (name, value) in runs.flatten() {
            values.entry(name).or_default().extend(value);
        }
        let estimates = values
            .into_iter()
            .filter_map(|(name, values)| Some((name.to_owned(), Estimate::of(&values)?)));
        Self(estimates.collect())
    }

    /// The estimate of one metric.
    pub fn get(&self, name: &str) -> Option<Estimate> {
        self.0.get(name).copied()
    }
}

// === impl PartEstimates ===

impl PartEstimates {
    /// Of every part, in the order of the first report: runs that differ only in their seed have the
    /// same parts.
    pub fn over(reports: &[Report], parts: impl Fn(&Report) -> &[PartReport]) -> Vec<Self> {
        let first = reports.first().map_or(&[][..], &parts);
        let estimates = |(at, part): (usize, &PartReport)| {
            let same = reports.iter().filter_map(|report| parts(report).get(at));
            Self {
                name: part.name.clone(),
                estimates: Estimates::of(same.map(|part| part.summary.scalars())),
            }
        };
        first.iter().enumerate().map(estimates).collect()
    }
}

/// Quantiles at 0.975 for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Student's t at 0.975: a table up to 30 degrees of freedom, then the first terms of its
/// expansion around the normal quantile (Abramowitz and Stegun 26.7.5).
pub fn t_quantile_975(degrees: usize) -> f64 {
    if let Some(&t) = degrees.checked_sub(1).and_then(|at| T_975.get(at)) {
        return t;
    }
    let (z, n) = (1.959_964, degrees.max(1) as f64);
    let z3 = z * z * z;
    z + (z3 + z) / (4.0 * n) + (5.0 * z3 * z * z + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_by_hand() {
        // Mean 3, sample variance 2.5, t(4) = 2.776: 2.776 * sqrt(2.5 / 5).
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width.unwrap() - 1.963).abs() < 1e-3);
        assert_eq!(Estimate::of(&[7.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn the_expansion_meets_the_tables() {
        assert!((t_quantile_975(40) - 2.021).abs() < 1e-3);
        assert!((t_quantile_975(120) - 1.980).abs() < 1e-3);
    }
}
