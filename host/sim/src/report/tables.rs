//! Tables of the page: means, differences from a baseline, apps and phases.

use std::fmt::Write;

use super::comparison::{Change, Verdict};
use super::matrix::{DIFFERENCES_NOTE, DifferenceMatrix, differences};
use super::metric::{ACCURACY, COLUMNS, Metric, P50, P99, REJECTIONS, UTILITY, VIOLATIONS};
use super::table::{ComparisonRow, Rank, comparison_table};
use super::view::{PolicyView, ReportView};
use crate::metrics::{Estimate, PartEstimates};
use crate::plot::inline_marker;
use crate::runner::PolicyOutcome;
use crate::text::{brief, escape, plural};

/// The metrics of apps and phases.
const PART_COLUMNS: [Metric; 6] = [ACCURACY, UTILITY, VIOLATIONS, REJECTIONS, P50, P99];

/// The apps of an outcome, or its phases.
type PartsOf = fn(&PolicyOutcome) -> &[PartEstimates];

/// The means of all policies at all points.
pub(super) fn comparison(view: &ReportView<'_>) -> String {
    let table = comparison_table(&view.data.runs);
    let mut body = String::new();
    for point in &view.points {
        body += "<tbody>";
        if view.is_sweep() {
            body += &head_row(COLUMNS.len() + 1, &escape(point.name));
        }
        for row in table.rows.iter().filter(|row| row.point == point.name) {
            body += &means(view, row);
        }
        body += "</tbody>\n";
    }
    let runs = view.data.runs.iter().map(|run| run.reports.len()).max();
    let intervals = match runs {
        Some(runs) if runs > 1 => format!(
            "Means of {}, ± half of their 95 % confidence intervals. ",
            plural(runs, "run", "runs")
        ),
        _ => "One run each. ".to_owned(),
    };
    let ranks = match (view.policies.len(), runs) {
        (0 | 1, _) => "",
        (_, Some(0 | 1) | None) => "<b class=\"best\">Bold</b>: best.",
        _ => {
            "<b class=\"best\">Bold</b>: best; <span class=\"tied\">underlined</span>: not \
             significantly different from the best (the 95 % interval of the differences, seed by \
             seed, contains 0)."
        }
    };
    framed(
        "Comparison of policies",
        &format!("{intervals}{ranks}"),
        COLUMNS.iter().map(|metric| metric.heading.to_owned()),
        &body,
    )
}

fn means(view: &ReportView<'_>, row: &ComparisonRow) -> String {
    let cells = row.estimates().into_iter().zip(row.ranks).zip(&COLUMNS);
    let cells = cells.map(|((estimate, rank), metric)| mean(metric, estimate, rank));
    let head = policy_head(view, &row.policy);
    format!("{head}{}</tr>", cells.collect::<String>())
}

fn mean(metric: &Metric, estimate: Option<Estimate>, rank: Rank) -> String {
    let Some((mean, half)) = metric.shown(estimate) else {
        return "<td>–</td>".to_owned();
    };
    let half = half.map_or(String::new(), |half| format!("<small> ± {half}</small>"));
    match rank {
        Rank::None => format!("<td>{mean}{half}</td>"),
        Rank::Best => format!("<td><b class=\"best\">{mean}</b>{half}</td>"),
        Rank::Tied => format!("<td><span class=\"tied\">{mean}</span>{half}</td>"),
    }
}

/// The differences from the baseline, if one was named.
pub(super) fn matrices(view: &ReportView<'_>) -> String {
    let matrices = differences(&view.data.comparisons);
    let Some(first) = matrices.first() else {
        return String::new();
    };
    let (baseline, seeds) = (escape(&first.baseline), first.seeds);
    let tables: String = matrices
        .iter()
        .map(|matrix| self::matrix(view, matrix))
        .collect();
    format!(
        "<h3>Differences from {baseline}, {seeds} seeds</h3>\n<p class=\"note\">\
         {DIFFERENCES_NOTE}</p>\n<div class=\"matrices\">\n{tables}</div>\n"
    )
}

fn matrix(view: &ReportView<'_>, matrix: &DifferenceMatrix) -> String {
    let rows = matrix.rows.iter().map(|row| {
        let cells = row.changes.iter().map(|change| match change {
            Some(change) => difference(change),
            None => "<td>–</td>".to_owned(),
        });
        let head = policy_head(view, &row.policy);
        format!("{head}{}</tr>", cells.collect::<String>())
    });
    let caption = match matrix.metric {
        Some(metric) => format!("<b>{}</b> {}", metric.heading, metric.caption()),
        None => String::new(),
    };
    let body = format!("<tbody>{}</tbody>\n", rows.collect::<String>());
    let headings = matrix.columns.iter().map(|column| escape(column));
    framed(&escape(&matrix.title()), &caption, headings, &body)
}

fn difference(change: &Change) -> String {
    let (Some([mean, half, verdict]), Some(metric)) = (change.parts(), change.shown()) else {
        return "<td>–</td>".to_owned();
    };
    let class = match change.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Noise => "noise",
    };
    let effect = &change.effect;
    let size = effect.size.map_or("-".to_owned(), brief);
    let [from, to] = [effect.baseline, effect.mean].map(|mean| brief(mean * metric.factor));
    format!(
        "<td class=\"{class}\" title=\"from {from} to {to}, effect size {size}\">{mean}\
         <small> ± {half} {verdict}</small></td>"
    )
}

fn framed(
    label: &str,
    caption: &str,
    headings: impl Iterator<Item = String>,
    body: &str,
) -> String {
    let headings: String = headings
        .map(|name| format!("<th scope=\"col\">{name}</th>"))
        .collect();
    let caption = match caption {
        "" => String::new(),
        caption => format!("<caption><span>{caption}</span></caption>"),
    };
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\
         {caption}<thead><tr><th scope=\"col\">policy</th>{headings}</tr></thead>\n\
         {body}</table></div>\n"
    )
}

/// A row that names the rows below it; `name` is HTML.
fn head_row(columns: usize, name: &str) -> String {
    format!(
        "<tr class=\"point\"><th scope=\"rowgroup\" colspan=\"{columns}\"><span>{name}</span>\
         </th></tr>"
    )
}

fn policy_head(view: &ReportView<'_>, policy: &str) -> String {
    let marker = view.policy(policy).map(|policy| inline_marker(policy.id));
    let marker = marker.unwrap_or_default();
    format!("<tr><th scope=\"row\">{marker}{}</th>", escape(policy))
}

/// Folded tables of apps and of phases, if there are several.
pub(super) fn parts(view: &ReportView<'_>) -> String {
    let mut html = String::new();
    let kinds: [(&str, PartsOf); 2] = [
        ("By app", |run| &run.apps),
        ("By phase of the workload", |run| &run.phases),
    ];
    for (title, of) in kinds {
        // A sweep may vary their number: the longest list has all of them.
        let lists = view.data.runs.iter().map(of);
        let names = lists.max_by_key(|parts| parts.len()).unwrap_or_default();
        if names.len() < 2 {
            continue;
        }
        let mut body = String::new();
        for (at, part) in names.iter().enumerate() {
            for point in 0..view.points.len() {
                body += &part_rows(view, point, &part.name, at, of);
            }
        }
        let headings = PART_COLUMNS.iter().map(|metric| metric.heading.to_owned());
        let caption = format!("{title}, means of the runs.");
        let table = framed(title, &caption, headings, &body);
        let _ = writeln!(html, "<details><summary>{title}</summary>{table}</details>");
    }
    html
}

fn part_rows(view: &ReportView<'_>, point: usize, name: &str, at: usize, of: PartsOf) -> String {
    let name = match view.is_sweep() {
        true => format!("{}, {}", escape(name), escape(view.points[point].name)),
        false => escape(name),
    };
    let row = |policy: &PolicyView<'_>| {
        let part = of(view.run(point, policy)?).get(at);
        let cells = PART_COLUMNS.iter().map(|metric| {
            let estimate = part.and_then(|part| part.estimates.get(metric.key));
            mean(metric, estimate, Rank::None)
        });
        let head = policy_head(view, policy.name);
        Some(format!("{head}{}</tr>", cells.collect::<String>()))
    };
    let rows: String = view.policies.iter().filter_map(row).collect();
    let head = head_row(PART_COLUMNS.len() + 1, &name);
    format!("<tbody>{head}{rows}</tbody>\n")
}
