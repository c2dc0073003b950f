//! The data of a report by policy and point, as plots and tables ask for it.

use std::collections::BTreeMap;

use switchyard_core::ids::{ExitId, VariantId};

use super::answer_kinds::AnswerKind;
use super::data::ReportData;
use super::metric::Metric;
use crate::metrics::{Estimate, Report};
use crate::plot::SeriesId;
use crate::runner::PolicyOutcome;
use crate::text::shortened;

/// Points with a plot of their own; the first, the last and evenly spaced ones of a longer sweep.
const POINTS_MAX: usize = 12;

/// Most characters of a policy's name in a plot; legend and tables have all of it.
const NAME_MAX: usize = 18;

pub(super) struct ReportView<'a> {
    pub(super) data: &'a ReportData,
    /// In the order of their first results.
    pub(super) policies: Vec<PolicyView<'a>>,
    pub(super) points: Vec<PointView<'a>>,
    /// Every exit of the catalog, in the order of their colours.
    pub(super) kinds: Vec<AnswerKind<'a>>,
    /// Values of the swept parameter, if all are ascending numbers.
    pub(super) axis: Option<Vec<f64>>,
    /// By the names of point and policy.
    runs: BTreeMap<(&'a str, &'a str), &'a PolicyOutcome>,
}

/// A policy.
#[derive(Clone)]
pub(super) struct PolicyView<'a> {
    pub(super) id: SeriesId,
    pub(super) name: &'a str,
    /// Its name in plots.
    pub(super) label: String,
}

/// One point of the sweep.
#[derive(Clone, Copy)]
pub(super) struct PointView<'a> {
    pub(super) name: &'a str,
    /// Its name without the parameter's.
    pub(super) label: &'a str,
    /// Its value, if that is a number.
    pub(super) value: Option<f64>,
}

// === impl ReportView ===

impl<'a> ReportView<'a> {
    pub(super) fn new(data: &'a ReportData) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut points: Vec<PointView<'_>> = Vec::new();
        let mut runs = BTreeMap::new();
        for run in &data.runs {
            runs.entry((run.point.as_str(), run.policy.as_str()))
                .or_insert(run);
            if !names.contains(&run.policy.as_str()) {
                names.push(&run.policy);
            }
            if points.iter().all(|point| point.name != run.point) {
                points.push(PointView::new(&run.point));
            }
        }
        let policies = (0..).map(SeriesId).zip(names.iter().zip(labels(&names)));
        let policies = policies.map(|(id, (name, label))| PolicyView { id, name, label });
        Self {
            kinds: AnswerKind::all(&data.catalog),
            axis: axis(&points),
            runs,
            data,
            policies: policies.collect(),
            points,
        }
    }

    pub(super) fn run(&self, point: usize, policy: &PolicyView<'_>) -> Option<&'a PolicyOutcome> {
        self.runs
            .get(&(self.points[point].name, policy.name))
            .copied()
    }

    /// The estimate of a metric, in the unit in which it is shown.
    pub(super) fn estimate(
        &self,
        point: usize,
        policy: &PolicyView<'_>,
        metric: &Metric,
    ) -> Option<Estimate> {
        let estimate = self.run(point, policy)?.estimates.get(metric.key)?;
        Some(Estimate {
            mean: estimate.mean * metric.factor,
            half_width: estimate.half_width.map(|half| half * metric.factor),
            ..estimate
        })
    }

    pub(super) fn policy(&self, name: &str) -> Option<&PolicyView<'a>> {
        self.policies.iter().find(|policy| policy.name == name)
    }

    pub(super) fn is_sweep(&self) -> bool {
        self.points.len() > 1
    }

    /// Title of the axis of the swept parameter.
    pub(super) fn axis_label(&self) -> &'a str {
        match &self.data.meta.axis {
            Some(axis) => &axis.label,
            None => self
                .points
                .first()
                .map_or("", |p| p.name.split('=').next().unwrap_or("")),
        }
    }

    /// The points that get plots of their own: all, unless there are more than [`POINTS_MAX`].
    pub(super) fn plotted_points(&self) -> Vec<usize> {
        let points = self.points.len();
        match points <= POINTS_MAX {
            true => (0..points).collect(),
            false => (0..POINTS_MAX)
                .map(|at| at * (points - 1) / (POINTS_MAX - 1))
                .collect(),
        }
    }

    /// Points that get no plots of their own.
    pub(super) fn points_left_out(&self) -> usize {
        self.points.len() - self.plotted_points().len()
    }

    /// The position of a variant's exit among the kinds; without an exit, of its last one.
    pub(super) fn kind_of(&self, variant: VariantId, exit: Option<ExitId>) -> Option<usize> {
        let is_it = |kind: &AnswerKind<'_>| {
            kind.variant_id == variant && exit.is_none_or(|exit| kind.exit_id == exit)
        };
        self.kinds.iter().rposition(is_it)
    }

    /// The position of an exit among the kinds, by the names that results have.
    pub(super) fn kind_named(&self, app: &str, variant: &str, exit: &str) -> Option<usize> {
        let variants = &self.data.catalog.variants;
        self.kinds.iter().position(|kind| {
            let name = &variants[kind.variant_id.index()].exits[kind.exit_id.index()].name;
            kind.app == app && kind.variant == variant && name == exit
        })
    }
}

// === impl PointView ===

impl<'a> PointView<'a> {
    fn new(name: &'a str) -> Self {
        let label = name.split_once('=').map_or(name, |(_, value)| value);
        Self {
            name,
            label,
            value: label.parse().ok().filter(|value: &f64| value.is_finite()),
        }
    }
}

fn axis(points: &[PointView<'_>]) -> Option<Vec<f64>> {
    let values: Option<Vec<f64>> = points.iter().map(|point| point.value).collect();
    values.filter(|values| values.windows(2).all(|pair| pair[0] < pair[1]))
}

/// Names of policies in plots: of a path, the file's name without its ending, if that is unique.
fn labels(names: &[&str]) -> Vec<String> {
    let short: Vec<&str> = names.iter().map(|name| file_name(name)).collect();
    let is_unique = |name: &str| short.iter().filter(|other| **other == name).count() == 1;
    let label = |(name, short): (&&str, &&str)| {
        shortened(if is_unique(short) { short } else { name }, NAME_MAX)
    };
    names.iter().zip(&short).map(label).collect()
}

/// `headroom` of `build/headroom.wasm`; settings in braces are kept.
fn file_name(name: &str) -> &str {
    let path = name.split('{').next().unwrap_or(name);
    match path.strip_suffix(".wasm") {
        Some(stem) if path.len() == name.len() => stem.rsplit('/').next().unwrap_or(stem),
        _ => name,
    }
}

/// The mean of a value over the runs that have it.
pub(super) fn mean(reports: &[Report], of: impl Fn(&Report) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = reports.iter().filter_map(of).collect();
    Estimate::of(&values).map(|estimate| estimate.mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_from_files_are_named_like_the_file() {
        assert_eq!(
            labels(&["headroom/build/headroom.wasm", "sneakpeek", "a=b/c"]),
            ["headroom", "sneakpeek", "a=b/c"]
        );
        let same = labels(&["a/mine.wasm", "b/mine.wasm"]);
        assert_eq!(same, ["a/mine.wasm", "b/mine.wasm"]);
        let long = labels(&["sneakpeek-oblivious-slow", "sneakpeek-oblivious-fast"]);
        assert_ne!(long[0], long[1]);
    }
}
