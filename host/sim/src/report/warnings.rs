//! Arrivals that were left out and windows that policies failed, named before any result.

use std::collections::BTreeMap;

use super::view::ReportView;
use crate::runner::PolicyOutcome;
use crate::text::{escape, plural};

/// The boxes at the top of the page; empty if the run was whole and no policy failed.
pub(super) fn html(view: &ReportView<'_>) -> String {
    cuts(&view.data.meta.left_out) + &failures(view)
}

fn cuts(left_out: &[String]) -> String {
    let items = left_out.iter();
    let items: String = items
        .map(|cut| format!("<li>{}</li>", escape(cut)))
        .collect();
    match items.as_str() {
        "" => String::new(),
        items => {
            format!("<aside class=\"warning\"><h2>The trace was cut</h2><ul>{items}</ul></aside>\n")
        }
    }
}

fn failures(view: &ReportView<'_>) -> String {
    let items = view.data.runs.iter().filter_map(warning);
    let items: String = items.map(|line| format!("<li>{line}</li>")).collect();
    match items.as_str() {
        "" => String::new(),
        items => format!(
            "<aside class=\"warning\"><h2>Policies failed windows</h2><p>The native fallback \
             served those requests; the results below include them.</p><ul>{items}</ul></aside>\n"
        ),
    }
}

fn warning(run: &PolicyOutcome) -> Option<String> {
    let mut by_kind: BTreeMap<&str, u64> = BTreeMap::new();
    for (kind, count) in run.reports.iter().flat_map(|report| &report.faults) {
        *by_kind.entry(kind).or_default() += count;
    }
    let faults = by_kind.into_iter().map(|(kind, count)| {
        let windows = plural(count as usize, "window", "windows");
        format!("{windows} failed: {}", escape(kind))
    });
    let mut lines: Vec<String> = faults.collect();
    let taken_off: u64 = run.reports.iter().map(|report| report.taken_off).sum();
    if taken_off > 0 {
        let times = plural(taken_off as usize, "time", "times");
        lines.push(format!("taken off {times}"));
    }
    let abandoned: u64 = run.reports.iter().map(|report| report.abandoned).sum();
    if abandoned > 0 {
        let requests = plural(abandoned as usize, "request", "requests");
        lines.push(format!("{requests} left unserved at the end"));
    }
    let at = match run.point.as_str() {
        "" => String::new(),
        point => format!(", {}", escape(point)),
    };
    let policy = escape(&run.policy);
    (!lines.is_empty()).then(|| format!("<b>{policy}</b>{at}: {}", lines.join("; ")))
}
