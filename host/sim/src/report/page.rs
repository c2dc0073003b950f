//! The page.

use super::data::ReportData;
use super::figure::ReportFigure;
use super::metric::PLOTTED;
use super::view::ReportView;
use super::{
    answer_plots, batch_plots, gantt, latency_plots, legends, palette, provenance, sweep_plots,
    tables, tradeoff, value_plots, warnings,
};
use crate::plot;
use crate::text::{escape, number, plural};

const STYLE: &str = include_str!("style.css");

/// A section of the page.
struct PageSection {
    /// Its anchor.
    id: &'static str,
    heading: &'static str,
    html: String,
}

/// The style sheet of pages with plots, in a light and a dark theme.
pub fn style() -> String {
    format!("{}\n{STYLE}", plot::style())
}

/// The whole report as one HTML file that refers to no other file.
pub fn html(data: &ReportData) -> String {
    let view = ReportView::new(data);
    let title = match data.meta.title.as_str() {
        "" => "Simulation",
        title => title,
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{style}{answers}\n</style>\n</head>\n<body>\n{}{}</body>\n</html>\n",
        header(&view, title),
        body(&view),
        title = escape(title),
        style = style(),
        answers = palette::style(&view.kinds),
    )
}

fn header(view: &ReportView<'_>, title: &str) -> String {
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
    let workload = match escape(&view.data.meta.workload) {
        workload if workload.is_empty() => workload,
        workload => format!("<code>{workload}</code> · "),
    };
    format!(
        "<header><p class=\"eyebrow\">Switchyard simulation</p><h1>{title}</h1>\
         <p class=\"facts\">{workload}{facts}</p></header>\n"
    )
}

fn body(view: &ReportView<'_>) -> String {
    let comparison = tables::comparison(view) + &tables::matrices(view) + &tables::parts(view);
    let latency = grid(latency_plots::plots(view));
    let batches = view.plotted_points().into_iter();
    let batches = grid(batches.filter_map(|point| batch_plots::plot(view, point)));
    let sections: Vec<PageSection> = [
        ("results", "Results", results(view)),
        ("comparison", "Comparison", comparison),
        ("latency", "Latency", thinned(view, latency)),
        ("answers", "Answers", thinned(view, answers(view))),
        ("batches", "Batches", thinned(view, batches)),
        ("timelines", "Timelines", timelines(view)),
        ("provenance", "Provenance", provenance::html(view)),
    ]
    .into_iter()
    .filter(|(.., html)| !html.is_empty())
    .map(|(id, heading, html)| PageSection { id, heading, html })
    .collect();
    let links = sections
        .iter()
        .map(|section| format!("<a href=\"#{}\">{}</a>", section.id, section.heading));
    let sections_html = sections.iter().map(PageSection::html);
    format!(
        "<nav aria-label=\"Sections\">{}<p>{}</p></nav>\n<main>\n{}{}</main>\n",
        legends::policies(view),
        links.collect::<String>(),
        warnings::html(view),
        sections_html.collect::<String>(),
    )
}

fn results(view: &ReportView<'_>) -> String {
    let plot = match view.is_sweep() {
        true => sweep_plots::plot,
        false => value_plots::plot,
    };
    let metrics = PLOTTED.iter().filter_map(|metric| plot(view, metric));
    grid(tradeoff::plot(view).into_iter().chain(metrics))
}

/// Says how many points have no plot.
fn thinned(view: &ReportView<'_>, html: String) -> String {
    match view.points_left_out() {
        0 => html,
        _ if html.is_empty() => html,
        left_out => format!(
            "<p class=\"note\">{left_out} of {} points have no plot here; the tables have all of \
             them.</p>\n{html}",
            view.points.len()
        ),
    }
}

fn answers(view: &ReportView<'_>) -> String {
    let apps = view.data.catalog.apps.iter();
    let plots = grid(apps.filter_map(|app| answer_plots::plot(view, &app.name)));
    if plots.is_empty() {
        return plots;
    }
    let mut others = vec![("unanswered", "not answered")];
    let mut reports = view.data.runs.iter().flat_map(|run| &run.reports);
    if reports.any(|report| report.total.short_circuited > 0) {
        others.insert(0, ("evidence", "evidence alone"));
    }
    legends::answers(view, &others) + &plots
}

fn timelines(view: &ReportView<'_>) -> String {
    let timelines = &view.data.timelines;
    let plots = grid(timelines.iter().map(|timeline| gantt::plot(view, timeline)));
    if plots.is_empty() {
        return plots;
    }
    let mut others = vec![
        ("late", "answered late"),
        ("ontime", "answered in time"),
        ("gone", "ended without an answer"),
    ];
    let mut bars = timelines.iter().flat_map(|timeline| &timeline.bars);
    if bars.any(|bar| bar.load.0 > 0) {
        others.push(("load", "loading a model"));
    }
    legends::answers(view, &others) + &plots
}

fn grid(figures: impl IntoIterator<Item = ReportFigure>) -> String {
    let figures = figures.into_iter().map(|figure| figure.html());
    match figures.collect::<String>().as_str() {
        "" => String::new(),
        figures => format!("<div class=\"grid\">{figures}</div>\n"),
    }
}

// === impl PageSection ===

impl PageSection {
    fn html(&self) -> String {
        let Self { id, heading, html } = self;
        format!("<section id=\"{id}\"><h2>{heading}</h2>\n{html}</section>\n")
    }
}
