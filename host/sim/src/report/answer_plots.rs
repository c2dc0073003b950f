//! Which variants and exits answered: a bar of all requests per policy and point.

use super::figure::{ReportFigure, WIDTH};
use super::view::{PolicyView, ReportView};
use crate::metrics::{Report, Summary};
use crate::plot::{BarChart, BarGroup, BarPart, BarRow, Chart, Scale};
use crate::runner::PolicyOutcome;
use crate::text::{brief, shortened};

/// The plot of one app; absent if no request arrived for it.
pub(super) fn plot(view: &ReportView<'_>, app: &str) -> Option<ReportFigure> {
    let reports = view.data.runs.iter().flat_map(|run| &run.reports);
    let summaries = reports.filter_map(|report| summary(report, app));
    if summaries.map(|summary| summary.arrivals).sum::<u64>() == 0 {
        return None;
    }
    let groups = match view.is_sweep() {
        true => view
            .policies
            .iter()
            .map(|policy| swept(view, policy, app))
            .collect(),
        false => vec![BarGroup {
            heading: None,
            rows: view
                .policies
                .iter()
                .filter_map(|policy| alone(view, policy, app))
                .collect(),
        }],
    };
    let chart = BarChart {
        title: "% of requests".to_owned(),
        x: Scale::linear(0.0, 100.0),
        groups,
        legend: Vec::new(),
    };
    let label = format!("Answers to {app}'s requests, {}", chart.in_words());
    let svg = chart.drawing(WIDTH).inline(&label);
    Some(ReportFigure::new(
        app,
        "share of its requests, by the exit that answered",
        svg,
    ))
}

/// The bars of one policy, one per point.
fn swept(view: &ReportView<'_>, policy: &PolicyView<'_>, app: &str) -> BarGroup {
    let rows = view.plotted_points().into_iter().filter_map(|point| {
        Some(BarRow {
            name: shortened(view.points[point].label, 12),
            parts: parts(view, view.run(point, policy)?, app),
            has_track: true,
            ..BarRow::default()
        })
    });
    BarGroup {
        heading: Some((policy.id, shortened(policy.name, 44))),
        rows: rows.collect(),
    }
}

/// The bar of one policy without a sweep.
fn alone(view: &ReportView<'_>, policy: &PolicyView<'_>, app: &str) -> Option<BarRow> {
    Some(BarRow {
        name: policy.label.clone(),
        class: policy.id.class(),
        parts: parts(view, view.run(0, policy)?, app),
        has_track: true,
        ..BarRow::default()
    })
}

/// In the order of the kinds, then the answers from evidence; the rest was not answered.
fn parts(view: &ReportView<'_>, run: &PolicyOutcome, app: &str) -> Vec<BarPart> {
    let summaries = || run.reports.iter().filter_map(|report| summary(report, app));
    let arrivals: u64 = summaries().map(|summary| summary.arrivals).sum();
    let percent = |count: u64| 100.0 * count as f64 / arrivals.max(1) as f64;
    let mut answered = vec![0; view.kinds.len()];
    for served in run.reports.iter().flat_map(|report| &report.served) {
        if served.app == app
            && let Some(kind) = view.kind_named(app, &served.variant, &served.exit)
        {
            answered[kind] += served.answered;
        }
    }
    let part = |class: String, count: u64, name: &str| BarPart {
        class,
        value: percent(count),
        label: format!("{:.0}", percent(count)),
        tip: format!("{name} {} %", brief(percent(count))),
    };
    let kinds = view.kinds.iter().zip(answered).enumerate();
    let mut parts: Vec<BarPart> = kinds
        .filter(|(_, (_, count))| *count > 0)
        .map(|(at, (kind, count))| part(format!("k{at}"), count, &kind.label()))
        .collect();
    let evidence = summaries().map(|summary| summary.short_circuited).sum();
    if evidence > 0 {
        parts.push(BarPart {
            label: String::new(),
            ..part("evidence".to_owned(), evidence, "evidence alone")
        });
    }
    parts
}

fn summary<'a>(report: &'a Report, app: &str) -> Option<&'a Summary> {
    let part = report.apps.iter().find(|part| part.name == app)?;
    Some(&part.summary)
}
