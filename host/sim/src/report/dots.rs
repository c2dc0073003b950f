//! One metric of all policies where nothing was swept: a dot each, with its interval.

use super::figure::{Figure, WIDTH};
use super::frame::Frame;
use super::lines::told;
use super::metric::{Better, Metric};
use super::palette::policy_class;
use super::scale::Scale;
use super::svg::{Anchor, Svg, text_width};
use super::text::{brief, shortened};
use super::view::View;
use crate::metrics::Estimate;

/// Height of one policy's line.
const ROW: f64 = 30.0;

/// Most characters of a policy's name.
const NAME_MAX: usize = 16;

/// The plot of one metric, where any policy has it.
pub(super) fn plot(view: &View<'_>, metric: &Metric) -> Option<Figure> {
    let policies = 0..view.policies.len();
    let dots: Vec<(usize, Estimate)> = policies
        .filter_map(|policy| Some((policy, view.estimate(0, policy, metric)?)))
        .collect();
    if dots.is_empty() {
        return None;
    }
    let frame = frame(view, &dots, metric);
    let mut svg = Svg::new(WIDTH, frame.bottom() + 28.0);
    let ticks = frame.x.ticks(4);
    for (at, tick) in ticks.iter().enumerate() {
        let x = frame.x(tick.value);
        svg.line("rule", (x, frame.top), (x, frame.bottom()));
        let unit = if at + 1 == ticks.len() {
            metric.unit
        } else {
            ""
        };
        let label = format!("{}{unit}", tick.label);
        svg.text("tick", (x, frame.bottom() + 17.0), Anchor::Middle, &label);
    }
    for (row, (policy, estimate)) in dots.iter().enumerate() {
        let y = frame.top + ROW * (row as f64 + 0.5);
        draw(&mut svg, &frame, view, (*policy, estimate), y, metric);
    }
    let words = dots.iter().map(|(policy, estimate)| {
        format!("{}: {}", view.policies[*policy], told(estimate, metric))
    });
    let label = format!(
        "{}. {}.",
        metric.title,
        words.collect::<Vec<_>>().join("; ")
    );
    let note = match metric.better {
        Better::Higher => format!("{} — higher is better", metric.note),
        Better::Lower => format!("{} — lower is better", metric.note),
        Better::Neither => metric.note.to_owned(),
    };
    Some(Figure::new(metric.title, &note, svg.finish(&label)))
}

fn frame(view: &View<'_>, dots: &[(usize, Estimate)], metric: &Metric) -> Frame {
    let names = dots
        .iter()
        .map(|(policy, _)| shortened(view.policies[*policy], NAME_MAX));
    let left = 16.0 + names.map(|name| text_width(&name)).fold(0.0, f64::max);
    let reach: Vec<f64> = dots
        .iter()
        .flat_map(|(_, estimate)| {
            let half = estimate.half_width.unwrap_or(0.0);
            [(estimate.mean - half).max(0.0), estimate.mean + half]
        })
        .collect();
    let x = match metric.unit {
        " ms" => Scale::fitting(&reach, false, 3),
        _ => Scale::around(reach, false, 3),
    };
    Frame {
        left,
        top: 6.0,
        width: WIDTH - left - 62.0,
        height: ROW * dots.len() as f64,
        x,
        y: Scale::linear(0.0, 1.0),
    }
}

fn draw(
    svg: &mut Svg,
    frame: &Frame,
    view: &View<'_>,
    (policy, estimate): (usize, &Estimate),
    y: f64,
    metric: &Metric,
) {
    svg.open(&policy_class(policy));
    let name = shortened(view.policies[policy], NAME_MAX);
    svg.text("name", (frame.left - 10.0, y + 4.0), Anchor::End, &name);
    let x = frame.x(estimate.mean);
    let mut right = x;
    if let Some(half) = estimate.half_width {
        right = frame.x(estimate.mean + half);
        svg.line(
            "whisker",
            (frame.x((estimate.mean - half).max(0.0)), y),
            (right, y),
        );
    }
    let title = format!("{}: {}", view.policies[policy], told(estimate, metric));
    svg.marker(policy, (x, y), 4.4, &title);
    svg.close();
    let value = format!("{}{}", brief(estimate.mean), metric.unit);
    svg.text(
        "value",
        (right.max(x + 4.0) + 7.0, y + 4.0),
        Anchor::Start,
        &value,
    );
}
