//! One metric of all policies without a sweep: a dot each, with its interval.

use super::figure::{ReportFigure, WIDTH};
use super::metric::Metric;
use super::view::ReportView;
use crate::plot::{Chart, DotChart, DotRow, Scale};
use crate::text::brief;

/// The plot of one metric; absent if no policy has it, or if it is 0 for all of them.
pub(super) fn plot(view: &ReportView<'_>, metric: &Metric) -> Option<ReportFigure> {
    let rows = view.policies.iter().filter_map(|policy| {
        let estimate = view.estimate(0, policy, metric)?;
        Some(DotRow {
            id: policy.id,
            name: policy.label.clone(),
            value: estimate.mean,
            half_width: estimate.half_width,
            shown: format!("{}{}", brief(estimate.mean), metric.unit),
            tip: format!("{}: {}", policy.name, metric.in_words(&estimate)),
        })
    });
    let rows: Vec<DotRow> = rows.collect();
    if rows.iter().all(|row| row.value == 0.0) {
        return None;
    }
    let chart = DotChart {
        title: metric.axis.to_owned(),
        x: scale(&rows, metric),
        rows,
    };
    let label = format!("{}, {}", metric.title, chart.in_words());
    let svg = chart.drawing(WIDTH).inline(&label);
    Some(ReportFigure::new(metric.title, &metric.caption(), svg))
}

fn scale(rows: &[DotRow], metric: &Metric) -> Scale {
    let reach = rows.iter().flat_map(|row| {
        let half = row.half_width.unwrap_or(0.0);
        [(row.value - half).max(0.0), row.value + half]
    });
    match metric.unit {
        " ms" => Scale::fitting(&reach.collect::<Vec<_>>(), false, 3),
        _ => Scale::around(reach, false, 3),
    }
}
