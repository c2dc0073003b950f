//! The parts of the page that are not plots: the comparison, warnings, how it was made.

use std::fmt::Write;

use super::metric::{ACCURACY, COLUMNS, Metric, P50, P99, UTILITY, VIOLATIONS};
use super::svg::inline_marker;
use super::table::{Mark, table};
use super::text::{brief, escape, number, plural};
use super::view::View;
use crate::metrics::{Estimate, PartEstimates};
use crate::runner::Outcome;

/// The columns of parts of a run: what is known of apps and phases.
const PART_COLUMNS: [Metric; 5] = [ACCURACY, UTILITY, VIOLATIONS, P50, P99];

/// The apps of an outcome, or its phases.
type PartsOf = fn(&Outcome) -> &[PartEstimates];

/// Which colour is whose.
pub(super) fn legend(view: &View<'_>) -> String {
    let mut html = String::from("<ul class=\"legend\">");
    for (at, policy) in view.policies.iter().enumerate() {
        let _ = write!(html, "<li>{}{}</li>", inline_marker(at), escape(policy));
    }
    html + "</ul>\n"
}

/// Which colour answers how.
pub(super) fn kinds(view: &View<'_>, rest: &[(&str, &str)]) -> String {
    let mut html = String::new();
    for app in &view.data.catalog.apps {
        let own = view
            .kinds
            .iter()
            .enumerate()
            .filter(|(_, kind)| kind.app == app.name);
        let items = own.map(|(at, kind)| {
            let (label, accuracy) = (escape(&kind.label()), number(100.0 * kind.accuracy, 1));
            format!("<li><i class=\"swatch k{at}\"></i>{label} <small>{accuracy} %</small></li>")
        });
        let (name, items) = (escape(&app.name), items.collect::<String>());
        let _ = writeln!(
            html,
            "<ul class=\"legend\"><li class=\"of\">{name}</li>{items}</ul>"
        );
    }
    let rest = rest
        .iter()
        .map(|(class, name)| format!("<li><i class=\"swatch {class}\"></i>{name}</li>"));
    let rest: String = rest.collect();
    match rest.as_str() {
        "" => html,
        rest => format!("{html}<ul class=\"legend\">{rest}</ul>\n"),
    }
}

/// The table of all policies at all points.
pub(super) fn comparison(view: &View<'_>) -> String {
    let table = table(&view.data.runs);
    let mut body = String::new();
    for (point, seen) in view.points.iter().enumerate() {
        let rows = (0..table.rows.len()).filter(|&row| table.rows[row].point == seen.name);
        let rows: Vec<usize> = rows.collect();
        body += "<tbody>";
        if view.is_sweep() {
            let (span, name) = (COLUMNS.len() + 1, escape(view.points[point].name));
            let _ = write!(
                body,
                "<tr class=\"point\"><th scope=\"rowgroup\" colspan=\"{span}\">\
                 <span>{name}</span></th></tr>"
            );
        }
        for row in rows {
            let policy = &table.rows[row].policy;
            body += &policy_head(view, policy);
            let cells = table.rows[row]
                .estimates()
                .into_iter()
                .zip(table.marks(row));
            for ((estimate, mark), metric) in cells.zip(&COLUMNS) {
                body += &cell(metric, estimate, mark);
            }
            body += "</tr>";
        }
        body += "</tbody>\n";
    }
    let intervals = match view.data.runs.iter().map(|run| run.reports.len()).max() {
        Some(runs) if runs > 1 => format!(
            "Means of {}, ± half of their 95 % confidence intervals. ",
            plural(runs, "run", "runs")
        ),
        _ => "One run each. ".to_owned(),
    };
    let marks = match view.policies.len() {
        0 | 1 => "",
        _ => {
            "<b class=\"best\">Bold</b>: best of its point; \
             <span class=\"tied\">underlined</span>: \
              not told apart from it, for their intervals overlap."
        }
    };
    let caption = format!("{intervals}{marks}");
    framed(
        "Comparison of policies",
        &caption,
        COLUMNS.iter().map(|metric| metric.heading),
        &body,
    )
}

fn framed<'a>(
    label: &str,
    caption: &str,
    headings: impl Iterator<Item = &'a str>,
    body: &str,
) -> String {
    let headings: String = headings
        .map(|name| format!("<th scope=\"col\">{name}</th>"))
        .collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>\
         <caption><span>{caption}</span></caption><thead><tr>\
         <th scope=\"col\">policy</th>{headings}</tr></thead>\n\
         {body}</table></div>\n"
    )
}

fn policy_head(view: &View<'_>, policy: &str) -> String {
    let at = view
        .policies
        .iter()
        .position(|name| *name == policy)
        .unwrap_or(0);
    format!(
        "<tr><th scope=\"row\">{}{}</th>",
        inline_marker(at),
        escape(policy)
    )
}

fn cell(metric: &Metric, estimate: Option<Estimate>, mark: Mark) -> String {
    let Some((mean, half)) = metric.shown(estimate) else {
        return "<td>–</td>".to_owned();
    };
    let half = half.map_or(String::new(), |half| format!("<small> ± {half}</small>"));
    match mark {
        Mark::None => format!("<td>{mean}{half}</td>"),
        Mark::Best => format!("<td><b class=\"best\">{mean}</b>{half}</td>"),
        Mark::Tied => format!("<td><span class=\"tied\">{mean}</span>{half}</td>"),
    }
}

/// Tables of apps and of phases, where there are several, folded.
pub(super) fn parts(view: &View<'_>) -> String {
    let mut html = String::new();
    let kinds: [(&str, PartsOf); 2] = [
        ("By app", |run| &run.apps),
        ("By phase of the workload", |run| &run.phases),
    ];
    for (title, of) in kinds {
        // A sweep may vary how many there are: the longest list has all of them.
        let lists = view.data.runs.iter().map(of);
        let names = lists.max_by_key(|parts| parts.len()).unwrap_or_default();
        let names: Vec<&str> = names.iter().map(|part| part.name.as_str()).collect();
        if names.len() < 2 {
            continue;
        }
        let mut body = String::new();
        for (at, name) in names.iter().enumerate() {
            for &point in &view.focus() {
                body += &part_rows(view, point, name, at, of);
            }
        }
        let headings = PART_COLUMNS.iter().map(|metric| metric.heading);
        let caption = format!("{title}, means of the runs.");
        let table = framed(title, &caption, headings, &body);
        let _ = writeln!(html, "<details><summary>{title}</summary>{table}</details>");
    }
    html
}

fn part_rows(view: &View<'_>, point: usize, name: &str, at: usize, of: PartsOf) -> String {
    let (span, name) = (PART_COLUMNS.len() + 1, escape(name));
    let seen = match view.is_sweep() {
        true => format!("{name}, {}", escape(view.points[point].name)),
        false => name,
    };
    let mut body = format!(
        "<tbody><tr class=\"point\"><th scope=\"rowgroup\" colspan=\"{span}\">\
         <span>{seen}</span></th></tr>"
    );
    for policy in 0..view.policies.len() {
        let Some(run) = view.run(point, policy) else {
            continue;
        };
        body += &policy_head(view, view.policies[policy]);
        let part = of(run).get(at);
        for metric in &PART_COLUMNS {
            let estimate = part.and_then(|part| part.estimates.get(metric.key));
            body += &cell(metric, estimate, Mark::None);
        }
        body += "</tr>";
    }
    body + "</tbody>\n"
}

/// What must be known before the figures are believed: windows that policies failed.
pub(super) fn warnings(view: &View<'_>) -> String {
    let told: Vec<String> = view.data.runs.iter().filter_map(warning).collect();
    if told.is_empty() {
        return String::new();
    }
    let items: String = told.iter().map(|line| format!("<li>{line}</li>")).collect();
    format!(
        "<aside class=\"warning\"><h2>Not all of this is the policies' own work</h2><p>The native \
         fallback served what they failed.</p><ul>{items}</ul></aside>\n"
    )
}

fn warning(run: &Outcome) -> Option<String> {
    let mut told = Vec::new();
    let faults = run.reports.iter().flat_map(|report| &report.faults);
    let mut by_kind: Vec<(&str, u64)> = Vec::new();
    for (kind, count) in faults {
        match by_kind.iter_mut().find(|(known, _)| known == kind) {
            Some((_, sum)) => *sum += count,
            None => by_kind.push((kind, *count)),
        }
    }
    for (kind, count) in by_kind {
        told.push(format!(
            "{} failed: {}",
            plural(count as usize, "window", "windows"),
            escape(kind)
        ));
    }
    let taken_off: u64 = run.reports.iter().map(|report| report.taken_off).sum();
    if taken_off > 0 {
        told.push(format!(
            "taken off {}",
            plural(taken_off as usize, "time", "times")
        ));
    }
    let abandoned: u64 = run.reports.iter().map(|report| report.abandoned).sum();
    if abandoned > 0 {
        told.push(format!(
            "{} left unserved at the end",
            plural(abandoned as usize, "request", "requests")
        ));
    }
    let at = if run.point.is_empty() {
        String::new()
    } else {
        format!(", {}", escape(&run.point))
    };
    (!told.is_empty()).then(|| format!("<b>{}</b>{at}: {}", escape(&run.policy), told.join("; ")))
}

/// How the report was made, and from what.
pub(super) fn making(view: &View<'_>) -> String {
    let meta = &view.data.meta;
    let seeds: Vec<String> = meta.seeds.iter().map(u64::to_string).collect();
    let seconds = match meta.seconds > 0.0 {
        true => format!("{} s of virtual time", brief(meta.seconds)),
        false => String::new(),
    };
    let facts = [
        ("Command", code(&meta.command)),
        ("Workload", code(&meta.workload)),
        ("Profile", code(&meta.profile)),
        ("Arrivals in", seconds),
        ("Seeds", escape(&seeds.join(", "))),
        ("Made", escape(&meta.date)),
    ];
    let mut html = String::from("<dl>");
    for (term, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        let _ = write!(html, "<dt>{term}</dt><dd>{text}</dd>");
    }
    html + "</dl>\n" + &catalog(view) + &meanings()
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("<code>{}</code>", escape(text)),
    }
}

fn catalog(view: &View<'_>) -> String {
    let catalog = &view.data.catalog;
    let mut body = String::new();
    for app in &catalog.apps {
        let (name, slo, classes) = (escape(&app.name), brief(app.slo_ms), app.classes);
        let classes = plural(classes, "class", "classes");
        let _ = write!(
            body,
            "<tbody><tr class=\"point\"><th scope=\"rowgroup\" colspan=\"4\">\
             <span>{name}: deadline {slo} ms, {classes}</span></th></tr>"
        );
        for variant in catalog
            .variants
            .iter()
            .filter(|variant| variant.app == app.name)
        {
            let exits = variant.exits.iter().map(|exit| {
                format!(
                    "{} {} %",
                    escape(&exit.name),
                    number(100.0 * exit.accuracy, 1)
                )
            });
            let exits: Vec<String> = exits.collect();
            let _ = write!(
                body,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&variant.name),
                exits.join(", "),
                variant.batch_size_max,
                number(variant.memory_bytes as f64 / 1e6, 1),
            );
        }
        body += "</tbody>\n";
    }
    format!(
        "<details><summary>{}, {}, {}</summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Catalog\"><table>\
         <caption><span>What there was to choose from.</span></caption><thead><tr>\
         <th scope=\"col\">variant</th><th scope=\"col\">exits and their accuracies</th>\
         <th scope=\"col\">largest batch</th><th scope=\"col\">memory, MB</th></tr></thead>\n{body}\
         </table></div></details>\n",
        plural(catalog.apps.len(), "app", "apps"),
        plural(catalog.variants.len(), "variant", "variants"),
        plural(catalog.workers.len(), "worker", "workers"),
    )
}

fn meanings() -> String {
    let rows: String = MEANINGS
        .iter()
        .map(|(term, text)| format!("<dt>{term}</dt><dd>{text}</dd>"))
        .collect();
    format!("<details><summary>What the metrics mean</summary><dl>{rows}</dl></details>\n")
}

const MEANINGS: [(&str, &str); 7] = [
    (
        "Accuracy",
        "mean over all answers of the recall that the exit which answered has for the class of \
         the request",
    ),
    (
        "Utility",
        "that accuracy times what lateness leaves of it by the app's penalty, mean over arrivals; \
         nothing where there was no answer",
    ),
    (
        "Goodput",
        "answers by their deadlines per second of virtual time",
    ),
    (
        "Violations",
        "arrivals that were not answered by their deadlines, whatever became of them",
    ),
    ("Latency", "from arrival to answer, of what was answered"),
    ("Windows", "times that the policy was asked for a plan"),
    (
        "±",
        "half of the 95 % confidence interval of the mean over the seeds, by Student's t",
    ),
];
