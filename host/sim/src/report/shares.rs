//! Which variants and exits answered: a bar of all requests per policy and point.

use super::figure::{Figure, WIDTH};
use super::palette::policy_class;
use super::svg::{Anchor, Svg, text_width};
use super::text::{brief, shortened};
use super::view::View;
use crate::metrics::{Report, Summary};
use crate::runner::Outcome;

const BAR: f64 = 17.0;
const GAP: f64 = 4.0;
const HEAD: f64 = 24.0;

/// A part of a bar: its class, how wide, and what it is.
struct Part {
    class: String,
    share: f64,
    name: String,
}

/// The plot of one app, where anything arrived for it.
pub(super) fn plot(view: &View<'_>, app_at: usize) -> Option<Figure> {
    let app = &view.data.catalog.apps[app_at].name;
    let runs = view.data.runs.iter();
    let arrived = runs
        .flat_map(|run| &run.reports)
        .filter_map(|report| summary(report, app));
    if arrived.map(|summary| summary.arrivals).sum::<u64>() == 0 {
        return None;
    }
    let points = view.barred();
    let block = match view.is_sweep() {
        true => HEAD + (BAR + GAP) * points.len() as f64 + 6.0,
        false => BAR + 2.0 * GAP + 2.0,
    };
    let mut svg = Svg::new(WIDTH, block * view.policies.len() as f64 + 22.0);
    let left = left(view);
    let mut words = Vec::new();
    for policy in 0..view.policies.len() {
        let top = block * policy as f64;
        draw_head(&mut svg, view, policy, left, top);
        for (row, &point) in points.iter().enumerate() {
            let Some(run) = view.run(point, policy) else {
                continue;
            };
            let parts = parts(view, run, app);
            let y = top
                + if view.is_sweep() {
                    HEAD + (BAR + GAP) * row as f64
                } else {
                    GAP
                };
            if view.is_sweep() {
                let label = shortened(view.points[point].label, 12);
                svg.text("tick", (left - 8.0, y + BAR - 4.5), Anchor::End, &label);
            }
            draw(&mut svg, &parts, [left, y, WIDTH - left - 1.0]);
            words.push(in_words(run, &parts));
        }
    }
    draw_axis(&mut svg, left, block * view.policies.len() as f64 + 14.0);
    let label = format!("How {app}'s requests were answered. {}.", words.join("; "));
    Some(Figure::new(
        app,
        "share of its requests, by who answered",
        svg.finish(&label),
    ))
}

/// Room for what stands before the bars.
fn left(view: &View<'_>) -> f64 {
    let labels: Vec<String> = match view.is_sweep() {
        true => view
            .points
            .iter()
            .map(|point| shortened(point.label, 12))
            .collect(),
        false => view
            .policies
            .iter()
            .map(|policy| shortened(policy, 16))
            .collect(),
    };
    let widest = labels
        .iter()
        .map(|label| text_width(label))
        .fold(0.0, f64::max);
    10.0 + widest
}

fn draw_head(svg: &mut Svg, view: &View<'_>, policy: usize, left: f64, top: f64) {
    svg.open(&policy_class(policy));
    let name = view.policies[policy];
    if view.is_sweep() {
        svg.marker(policy, (left + 5.0, top + 13.0), 4.0, "");
        svg.text(
            "name",
            (left + 15.0, top + 17.0),
            Anchor::Start,
            &shortened(name, 44),
        );
    } else {
        let name = shortened(name, 16);
        svg.text(
            "name",
            (left - 8.0, top + GAP + BAR - 4.5),
            Anchor::End,
            &name,
        );
    }
    svg.close();
}

fn draw(svg: &mut Svg, parts: &[Part], [left, y, width]: [f64; 3]) {
    svg.rect("unanswered", [left, y, width, BAR], "");
    let mut x = left;
    for part in parts {
        let wide = width * part.share;
        let title = format!("{}: {} %", part.name, brief(100.0 * part.share));
        svg.open(&part.class);
        svg.rect("fill", [x, y, wide, BAR], &title);
        let text = format!("{:.0}", 100.0 * part.share);
        if wide > text_width(&text) + 10.0 && part.class.starts_with('k') {
            svg.text("on", (x + wide / 2.0, y + BAR - 4.5), Anchor::Middle, &text);
        }
        svg.close();
        x += wide;
    }
}

fn draw_axis(svg: &mut Svg, left: f64, y: f64) {
    let width = WIDTH - left - 1.0;
    for (share, anchor) in [
        (0.0, Anchor::Start),
        (0.5, Anchor::Middle),
        (1.0, Anchor::End),
    ] {
        let label = format!(
            "{:.0}{}",
            100.0 * share,
            if share == 1.0 { " %" } else { "" }
        );
        svg.text("tick", (left + share * width, y + 4.0), anchor, &label);
    }
}

/// In the order of the kinds; then what evidence answered. The rest was not answered.
fn parts(view: &View<'_>, run: &Outcome, app: &str) -> Vec<Part> {
    let summaries = || run.reports.iter().filter_map(|report| summary(report, app));
    let arrivals: u64 = summaries().map(|summary| summary.arrivals).sum();
    let share = |count: u64| count as f64 / arrivals.max(1) as f64;
    let mut answered = vec![0; view.kinds.len()];
    for served in run.reports.iter().flat_map(|report| &report.served) {
        if served.app == app
            && let Some(kind) = view.kind_named(app, &served.variant, &served.exit)
        {
            answered[kind] += served.answered;
        }
    }
    let kinds = view.kinds.iter().zip(answered).enumerate();
    let mut parts: Vec<Part> = kinds
        .filter(|(_, (_, count))| *count > 0)
        .map(|(at, (kind, count))| Part {
            class: format!("k{at}"),
            share: share(count),
            name: kind.label(),
        })
        .collect();
    let evidence = summaries().map(|summary| summary.short_circuited).sum();
    if evidence > 0 {
        parts.push(Part {
            class: "evidence".to_owned(),
            share: share(evidence),
            name: "evidence alone".to_owned(),
        });
    }
    parts
}

fn summary<'a>(report: &'a Report, app: &str) -> Option<&'a Summary> {
    let part = report.apps.iter().find(|part| part.name == app)?;
    Some(&part.summary)
}

fn in_words(run: &Outcome, parts: &[Part]) -> String {
    let told = parts
        .iter()
        .map(|part| format!("{} {} %", part.name, brief(100.0 * part.share)));
    let told: Vec<String> = told.collect();
    let at = if run.point.is_empty() {
        String::new()
    } else {
        format!(" at {}", run.point)
    };
    format!("{}{at}: {}", run.policy, told.join(", "))
}
