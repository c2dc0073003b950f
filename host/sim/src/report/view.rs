//! The data by policy and point, as plots ask for it.

use std::collections::BTreeMap;

use super::data::{ReportData, VariantData};
use super::metric::Metric;
use crate::metrics::{Estimate, Report};
use crate::runner::Outcome;

/// Points that get plots of their own; of longer sweeps, the first, the middle and the last.
const FOCUS_MAX: usize = 3;

/// Points that get a bar in each plot of shares.
const BARS_MAX: usize = 12;

pub(super) struct View<'a> {
    pub(super) data: &'a ReportData,
    /// In the order of their first results: a policy's position is its colour.
    pub(super) policies: Vec<&'a str>,
    pub(super) points: Vec<PointView<'a>>,
    /// Every way to answer, as the whole report colours them.
    pub(super) kinds: Vec<Kind<'a>>,
    /// Values of the swept parameter, where all are numbers that grow.
    pub(super) axis: Option<Vec<f64>>,
    /// By the names of point and policy.
    runs: BTreeMap<(&'a str, &'a str), &'a Outcome>,
}

/// One point of the sweep.
#[derive(Clone, Copy)]
pub(super) struct PointView<'a> {
    pub(super) name: &'a str,
    /// Its name without the parameter's.
    pub(super) label: &'a str,
    /// The same as a number, where it is one.
    pub(super) value: Option<f64>,
}

/// One exit of one variant.
#[derive(Clone, Copy)]
pub(super) struct Kind<'a> {
    pub(super) app: &'a str,
    /// Position of the app.
    pub(super) app_at: usize,
    /// Position of the variant in the catalog.
    pub(super) variant_at: usize,
    pub(super) variant: &'a str,
    pub(super) exit_at: usize,
    /// Absent where the variant has one exit only, which needs no name.
    pub(super) exit: Option<&'a str>,
    pub(super) accuracy: f64,
    /// From 0, the least accurate of the app, to 1.
    pub(super) rank: f64,
}

// === impl View ===

impl<'a> View<'a> {
    pub(super) fn new(data: &'a ReportData) -> Self {
        let mut policies: Vec<&str> = Vec::new();
        let mut points: Vec<PointView<'_>> = Vec::new();
        let mut runs = BTreeMap::new();
        for run in &data.runs {
            runs.entry((run.point.as_str(), run.policy.as_str()))
                .or_insert(run);
            if !policies.contains(&run.policy.as_str()) {
                policies.push(&run.policy);
            }
            if points.iter().all(|point| point.name != run.point) {
                points.push(PointView::new(&run.point));
            }
        }
        Self {
            kinds: kinds(data),
            axis: axis(&points),
            runs,
            data,
            policies,
            points,
        }
    }

    pub(super) fn run(&self, point: usize, policy: usize) -> Option<&'a Outcome> {
        let names = (self.points[point].name, self.policies[policy]);
        self.runs.get(&names).copied()
    }

    /// The value and half interval of a metric, as it is shown.
    pub(super) fn estimate(
        &self,
        point: usize,
        policy: usize,
        metric: &Metric,
    ) -> Option<Estimate> {
        let estimate = self.run(point, policy)?.estimates.get(metric.key)?;
        Some(Estimate {
            mean: estimate.mean * metric.factor,
            half_width: estimate.half_width.map(|half| half * metric.factor),
            ..estimate
        })
    }

    pub(super) fn is_sweep(&self) -> bool {
        self.points.len() > 1
    }

    /// What the horizontal axis says.
    pub(super) fn axis_label(&self) -> &'a str {
        match &self.data.meta.axis {
            Some(axis) => &axis.label,
            None => self
                .points
                .first()
                .map_or("", |p| p.name.split('=').next().unwrap_or("")),
        }
    }

    /// The points that get plots of their own.
    pub(super) fn focus(&self) -> Vec<usize> {
        self.picked(FOCUS_MAX)
    }

    /// The points that get a bar each.
    pub(super) fn barred(&self) -> Vec<usize> {
        self.picked(BARS_MAX)
    }

    /// All points, or so many of them, the first and the last included.
    fn picked(&self, most: usize) -> Vec<usize> {
        let points = self.points.len();
        match points <= most {
            true => (0..points).collect(),
            false => (0..most).map(|at| at * (points - 1) / (most - 1)).collect(),
        }
    }

    /// Where a variant and an exit stand among the kinds; without an exit, its last.
    pub(super) fn kind_of(&self, variant: usize, exit: Option<usize>) -> Option<usize> {
        let mut own = self
            .kinds
            .iter()
            .enumerate()
            .filter(|(_, k)| k.variant_at == variant);
        match exit {
            Some(exit) => own.find(|(_, kind)| kind.exit_at == exit).map(|(at, _)| at),
            None => own.next_back().map(|(at, _)| at),
        }
    }

    /// Where the app, variant and exit of a result stand among the kinds.
    pub(super) fn kind_named(&self, app: &str, variant: &str, exit: &str) -> Option<usize> {
        let variants = &self.data.catalog.variants;
        self.kinds.iter().position(|kind| {
            let name = &variants[kind.variant_at].exits[kind.exit_at].name;
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

// === impl Kind ===

impl Kind<'_> {
    pub(super) fn label(&self) -> String {
        match self.exit {
            Some(exit) => format!("{} · {exit}", self.variant),
            None => self.variant.to_owned(),
        }
    }
}

fn axis(points: &[PointView<'_>]) -> Option<Vec<f64>> {
    let values: Option<Vec<f64>> = points.iter().map(|point| point.value).collect();
    values.filter(|values| values.windows(2).all(|pair| pair[0] < pair[1]))
}

/// App by app, and in each from the least accurate variant to the most accurate.
fn kinds(data: &ReportData) -> Vec<Kind<'_>> {
    let apps = data.catalog.apps.iter().enumerate();
    apps.flat_map(|(app_at, app)| {
        let all = data.catalog.variants.iter().enumerate();
        let mut own: Vec<_> = all.filter(|(_, variant)| variant.app == app.name).collect();
        own.sort_by(|a, b| last_accuracy(a.1).total_cmp(&last_accuracy(b.1)));
        let count: usize = own.iter().map(|(_, variant)| variant.exits.len()).sum();
        let exits = own.into_iter().flat_map(|(at, variant)| {
            (0..variant.exits.len()).map(move |exit| (at, variant, exit))
        });
        let kind = move |(rank, (variant_at, variant, exit_at)): (usize, _)| {
            let variant: &VariantData = variant;
            let exit = &variant.exits[exit_at];
            Kind {
                app: &app.name,
                app_at,
                variant_at,
                variant: &variant.name,
                exit_at,
                exit: (variant.exits.len() > 1).then_some(exit.name.as_str()),
                accuracy: exit.accuracy,
                rank: match count {
                    1 => 0.6,
                    _ => rank as f64 / (count - 1) as f64,
                },
            }
        };
        exits.enumerate().map(kind)
    })
    .collect()
}

fn last_accuracy(variant: &VariantData) -> f64 {
    variant.exits.last().map_or(0.0, |exit| exit.accuracy)
}

/// The mean of what each run's report says, of those that say it.
pub(super) fn mean(reports: &[Report], of: impl Fn(&Report) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = reports.iter().filter_map(of).collect();
    Estimate::of(&values).map(|estimate| estimate.mean)
}
