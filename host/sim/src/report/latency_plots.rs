//! Distribution functions of latency: a plot per point, a curve per policy, one scale for all.

use super::figure::{ReportFigure, WIDTH};
use super::view::{PolicyView, ReportView, mean};
use crate::metrics::Report;
use crate::plot::{Chart, LineChart, LinePoint, LineSeries, Reference, Scale};
use crate::text::brief;

/// Shares of answers with a marker, in percent.
const MARKED: [f64; 3] = [50.0, 95.0, 99.0];

/// A latency and the share of answers that took at most that long.
#[derive(Clone, Copy)]
struct CdfStep {
    latency_ms: f64,
    percent: f64,
}

/// The distribution of one policy at one point.
struct LatencyCurve<'a> {
    policy: &'a PolicyView<'a>,
    steps: Vec<CdfStep>,
}

/// The plots of all points at which anything was answered.
pub(super) fn plots(view: &ReportView<'_>) -> Vec<ReportFigure> {
    let points = view.plotted_points().into_iter();
    let curves: Vec<(usize, Vec<LatencyCurve<'_>>)> = points
        .map(|point| (point, curves(view, point)))
        .filter(|(_, curves)| !curves.is_empty())
        .collect();
    let steps = curves
        .iter()
        .flat_map(|(_, curves)| curves)
        .flat_map(|curve| &curve.steps);
    let latencies = steps
        .map(|step| step.latency_ms)
        .chain(view.data.meta.deadline_ms);
    let latencies: Vec<f64> = latencies.filter(|&ms| ms > 0.0).collect();
    let scale = Scale::fitting(&latencies, true, 6);
    let plots = curves
        .iter()
        .map(|(point, curves)| plot(view, *point, curves, scale));
    plots.collect()
}

fn plot(
    view: &ReportView<'_>,
    point: usize,
    curves: &[LatencyCurve<'_>],
    scale: Scale,
) -> ReportFigure {
    let deadline = view.data.meta.deadline_ms.map(|value| Reference {
        value,
        label: "deadline".to_owned(),
    });
    let chart = LineChart {
        x_title: "latency, ms".to_owned(),
        y_title: "% of answers".to_owned(),
        x: scale,
        y: Scale::linear(0.0, 100.0),
        series: curves.iter().map(|curve| curve.series(scale)).collect(),
        references: deadline.into_iter().collect(),
        ..LineChart::default()
    };
    let title = match view.is_sweep() {
        true => view.points[point].name,
        false => "All answers",
    };
    let curves: Vec<String> = curves.iter().map(LatencyCurve::in_words).collect();
    let at = if view.is_sweep() {
        format!(", {title}")
    } else {
        String::new()
    };
    let label = format!("Distribution of latency{at}. {}.", curves.join("; "));
    let svg = chart.drawing(WIDTH).inline(&label);
    ReportFigure::new(title, "share of answers; marks at 50, 95 and 99 %", svg)
}

fn curves<'a>(view: &'a ReportView<'_>, point: usize) -> Vec<LatencyCurve<'a>> {
    let curve = |policy: &'a PolicyView<'_>| {
        let steps = steps(&view.run(point, policy)?.reports);
        (!steps.is_empty()).then_some(LatencyCurve { policy, steps })
    };
    view.policies.iter().filter_map(curve).collect()
}

/// The mean over runs of each quantile.
fn steps(reports: &[Report]) -> Vec<CdfStep> {
    let cdf = |report: &Report| report.total.latency.cdf.len();
    let steps = reports.iter().map(cdf).max().unwrap_or(0);
    let step = |at: usize| {
        let known = |report: &Report| report.total.latency.cdf.get(at).copied();
        Some(CdfStep {
            percent: 100.0 * reports.iter().find_map(known)?.1,
            latency_ms: mean(reports, |report| known(report).map(|step| step.0))?,
        })
    };
    (0..steps).filter_map(step).collect()
}

// === impl LatencyCurve ===

impl LatencyCurve<'_> {
    /// From the axis up, and with a point of its own per marked share.
    fn series(&self, scale: Scale) -> LineSeries {
        let floor = if scale.is_log() { scale.ends().0 } else { 0.0 };
        let point = |step: &CdfStep| LinePoint::new(step.latency_ms.max(floor), step.percent);
        let base = self.steps.first().map(|step| CdfStep {
            percent: 0.0,
            ..*step
        });
        let mut points: Vec<LinePoint> = base.iter().chain(&self.steps).map(point).collect();
        for wanted in MARKED {
            if let Some(step) = self.quantile(wanted) {
                let (name, ms) = (self.policy.name, brief(step.latency_ms));
                let tip = format!("{name}: {wanted:.0} % within {ms} ms");
                points.push(point(&step).with_tip(tip));
            }
        }
        points.sort_by(|a, b| a.y.total_cmp(&b.y));
        LineSeries::new(self.policy.id, self.policy.label.as_str(), points)
    }

    /// Linear between the steps around it.
    fn quantile(&self, percent: f64) -> Option<CdfStep> {
        let above = self
            .steps
            .iter()
            .position(|step| step.percent >= percent - 1e-9)?;
        let high = self.steps[above];
        let Some(low) = above.checked_sub(1).map(|at| self.steps[at]) else {
            return Some(high);
        };
        let part = (percent - low.percent) / (high.percent - low.percent);
        Some(CdfStep {
            latency_ms: low.latency_ms + (high.latency_ms - low.latency_ms) * part,
            percent,
        })
    }

    fn in_words(&self) -> String {
        let ms = |percent| brief(self.quantile(percent).map_or(0.0, |step| step.latency_ms));
        let [p50, p95, p99] = MARKED.map(ms);
        let name = self.policy.name;
        format!("{name}: 50 % within {p50} ms, 95 % {p95} ms, 99 % {p99} ms")
    }
}
