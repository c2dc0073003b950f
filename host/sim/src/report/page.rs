//! The page.

use super::data::ReportData;
use super::figure::Figure;
use super::metric::PLOTTED;
use super::text::{escape, number, plural};
use super::view::View;
use super::{batches, cdf, dots, gantt, lines, palette, sections, shares, tradeoff};

const STYLE: &str = include_str!("style.css");

/// The whole report as one file of HTML that needs nothing beside it.
pub fn html(data: &ReportData) -> String {
    let view = View::new(data);
    let title = match data.meta.title.as_str() {
        "" => "Simulation",
        title => title,
    };
    let (light, dark) = (
        palette::variables(&view, false),
        palette::variables(&view, true),
    );
    let classes = palette::classes(&view);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}:root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n\
         {classes}\n</style>\n</head>\n<body>\n{}{}</body>\n</html>\n",
        header(&view, title),
        body(&view),
        title = escape(title),
    )
}

fn header(view: &View<'_>, title: &str) -> String {
    let arrivals = view.data.runs.iter().flat_map(|run| &run.reports);
    let arrivals: u64 = arrivals.map(|report| report.total.arrivals).sum();
    let mut facts = vec![plural(view.policies.len(), "policy", "policies")];
    if view.is_sweep() {
        facts.push(plural(view.points.len(), "point", "points"));
    }
    facts.push(plural(view.data.meta.seeds.len().max(1), "seed", "seeds"));
    facts.push(plural(view.data.catalog.workers.len(), "worker", "workers"));
    facts.push(format!("{} simulated requests", number(arrivals as f64, 0)));
    let (title, facts) = (escape(title), facts.join(" · "));
    let workload = escape(&view.data.meta.workload);
    let workload = if workload.is_empty() {
        workload
    } else {
        format!("<code>{workload}</code> · ")
    };
    format!(
        "<header><p class=\"eyebrow\">Switchyard simulation</p><h1>{title}</h1>\
         <p class=\"facts\">{workload}{facts}</p></header>\n"
    )
}

/// A part of the page: its anchor, its heading and what stands under it.
type Section = (&'static str, &'static str, String);

fn body(view: &View<'_>) -> String {
    let sections: Vec<Section> = [
        ("results", "Results", results(view)),
        (
            "comparison",
            "Comparison",
            sections::comparison(view) + &sections::parts(view),
        ),
        ("latency", "Latency", per_point(view, cdf::plot)),
        ("answers", "Who answered", answers(view)),
        ("batches", "Batches", per_point(view, batches::plot)),
        ("timelines", "What ran where", timelines(view)),
        ("making", "How this was made", sections::making(view)),
    ]
    .into_iter()
    .filter(|(_, _, html)| !html.is_empty())
    .collect();
    let links = sections
        .iter()
        .map(|(id, title, _)| format!("<a href=\"#{id}\">{title}</a>"));
    let mut html = format!(
        "<nav aria-label=\"Sections\">{}{}</nav>\n<main>\n{}",
        sections::legend(view),
        format_args!("<p>{}</p>", links.collect::<String>()),
        sections::warnings(view),
    );
    for (id, title, content) in &sections {
        html += &format!("<section id=\"{id}\"><h2>{title}</h2>\n{content}</section>\n");
    }
    html + "</main>\n"
}

fn results(view: &View<'_>) -> String {
    let plot = if view.is_sweep() {
        lines::plot
    } else {
        dots::plot
    };
    let metrics = PLOTTED.iter().filter_map(|metric| plot(view, metric));
    grid(tradeoff::plot(view).into_iter().chain(metrics))
}

/// One plot for each point that gets its own.
fn per_point(view: &View<'_>, plot: fn(&View<'_>, usize) -> Option<Figure>) -> String {
    grid(
        view.focus()
            .into_iter()
            .filter_map(|point| plot(view, point)),
    )
}

fn answers(view: &View<'_>) -> String {
    let apps = 0..view.data.catalog.apps.len();
    let plots = grid(apps.filter_map(|app| shares::plot(view, app)));
    if plots.is_empty() {
        return plots;
    }
    let mut rest = vec![("unanswered", "not answered")];
    let mut reports = view.data.runs.iter().flat_map(|run| &run.reports);
    if reports.any(|report| report.total.short_circuited > 0) {
        rest.insert(0, ("evidence", "evidence alone"));
    }
    sections::kinds(view, &rest) + &plots
}

fn timelines(view: &View<'_>) -> String {
    let figures = view
        .data
        .timelines
        .iter()
        .map(|timeline| gantt::plot(view, timeline));
    let plots = grid(figures);
    if plots.is_empty() {
        return plots;
    }
    let mut rest = vec![
        ("late", "answered late"),
        ("ontime", "ended in time"),
        ("gone", "ended without an answer"),
    ];
    let mut bars = view
        .data
        .timelines
        .iter()
        .flat_map(|timeline| &timeline.bars);
    if bars.any(|bar| bar.load.0 > 0) {
        rest.push(("load", "loading a model"));
    }
    sections::kinds(view, &rest) + &plots
}

fn grid(figures: impl Iterator<Item = Figure>) -> String {
    let figures: String = figures.map(|figure| figure.html()).collect();
    match figures.is_empty() {
        true => figures,
        false => format!("<div class=\"grid\">{figures}</div>\n"),
    }
}
