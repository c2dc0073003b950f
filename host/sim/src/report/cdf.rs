//! Distribution functions of latency, one curve per policy.

use super::figure::{Figure, HEIGHT, WIDTH};
use super::frame::Frame;
use super::palette::policy_class;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::text::brief;
use super::view::{View, mean};
use crate::metrics::Report;

/// A latency in milliseconds and the share of answers that took no longer.
type Step = (f64, f64);

/// The plot of one point, where anything was answered.
pub(super) fn plot(view: &View<'_>, point: usize) -> Option<Figure> {
    let curves: Vec<(usize, Vec<Step>)> = (0..view.policies.len())
        .filter_map(|policy| {
            let steps = curve(&view.run(point, policy)?.reports);
            (!steps.is_empty()).then_some((policy, steps))
        })
        .collect();
    if curves.is_empty() {
        return None;
    }
    let deadline_ms = view.data.meta.deadline_ms;
    let frame = frame(&curves, deadline_ms);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    frame.draw_y(&mut svg, &frame.y.ticks(4), " %");
    frame.draw_x(&mut svg, &frame.x.ticks(6), "latency, ms");
    for (policy, steps) in &curves {
        draw(&mut svg, &frame, view, *policy, steps);
    }
    if let Some(deadline) = deadline_ms {
        draw_deadline(&mut svg, &frame, deadline);
    }
    let title = match view.is_sweep() {
        true => view.points[point].name,
        false => "All answers",
    };
    let label = in_words(view, point, &curves);
    let note = "share of answers; marks at 50, 95 and 99 %";
    Some(Figure::new(title, note, svg.finish(&label)))
}

fn draw_deadline(svg: &mut Svg, frame: &Frame, deadline_ms: f64) {
    let x = frame.x(deadline_ms);
    svg.line("deadline", (x, frame.top), (x, frame.bottom()));
    let (x, anchor) = match x > frame.left + frame.width / 2.0 {
        true => (x - 6.0, Anchor::End),
        false => (x + 6.0, Anchor::Start),
    };
    let y = frame.bottom() - 8.0;
    svg.text("tick halo", (x, y), anchor, "deadline");
}

/// The mean over runs of each quantile.
fn curve(reports: &[Report]) -> Vec<Step> {
    let cdf = |report: &Report| report.total.latency.cdf.len();
    let steps = reports.iter().map(cdf).max().unwrap_or(0);
    let step = |at: usize| {
        let known = |report: &Report| report.total.latency.cdf.get(at).copied();
        let share = reports.iter().find_map(known)?.1;
        Some((
            mean(reports, |report| known(report).map(|step| step.0))?,
            100.0 * share,
        ))
    };
    (0..steps).filter_map(step).collect()
}

fn frame(curves: &[(usize, Vec<Step>)], deadline_ms: Option<f64>) -> Frame {
    let latencies = curves
        .iter()
        .flat_map(|(_, steps)| steps.iter().map(|step| step.0));
    let all: Vec<f64> = latencies
        .chain(deadline_ms)
        .filter(|&ms| ms > 0.0)
        .collect();
    let left = 46.0;
    Frame {
        left,
        top: 12.0,
        width: WIDTH - left - 20.0,
        height: HEIGHT - 12.0 - 44.0,
        x: Scale::fitting(&all, true, 6),
        y: Scale::linear(0.0, 100.0),
    }
}

fn draw(svg: &mut Svg, frame: &Frame, view: &View<'_>, policy: usize, steps: &[Step]) {
    svg.open(&policy_class(policy));
    // From the axis up, so that the fastest answers are seen to be some.
    let base = steps.first().map(|step| frame.place(step.0, 0.0));
    let places = base
        .into_iter()
        .chain(steps.iter().map(|&(ms, share)| frame.place(ms, share)));
    svg.path("line", &places.collect::<Vec<_>>(), false);
    for wanted in [50.0, 95.0, 99.0] {
        if let Some((ms, share)) = quantile(steps, wanted) {
            let title = format!(
                "{}: {wanted:.0} % within {} ms",
                view.policies[policy],
                brief(ms)
            );
            svg.marker(policy, frame.place(ms, share), 3.2, &title);
        }
    }
    svg.close();
}

/// Between the steps around it.
fn quantile(steps: &[Step], share: f64) -> Option<Step> {
    let above = steps.iter().position(|step| step.1 >= share - 1e-9)?;
    let high = steps[above];
    let Some(low) = above.checked_sub(1).map(|at| steps[at]) else {
        return Some(high);
    };
    let part = (share - low.1) / (high.1 - low.1);
    Some((low.0 + (high.0 - low.0) * part, share))
}

fn in_words(view: &View<'_>, point: usize, curves: &[(usize, Vec<Step>)]) -> String {
    let told = curves.iter().map(|(policy, steps)| {
        let ms = |share| quantile(steps, share).map_or(0.0, |step| step.0);
        let (p50, p95, p99) = (brief(ms(50.0)), brief(ms(95.0)), brief(ms(99.0)));
        format!(
            "{}: 50 % within {p50} ms, 95 % {p95} ms, 99 % {p99} ms",
            view.policies[*policy]
        )
    });
    let told: Vec<String> = told.collect();
    let point = view.points[point].name;
    format!("Distribution of latency {point}. {}.", told.join("; "))
}
