//! A metric against the swept parameter, with its confidence bands.

use super::figure::{Figure, HEIGHT, WIDTH};
use super::frame::{Frame, ticks_at};
use super::labels::spread;
use super::metric::{Better, Metric};
use super::palette::policy_class;
use super::scale::Scale;
use super::svg::{Anchor, Svg, text_width};
use super::text::{brief, shortened};
use super::view::View;
use crate::metrics::Estimate;

/// Most characters of a policy's name beside its line.
const NAME_MAX: usize = 14;

/// The plot of one metric, where any run has it.
pub(super) fn plot(view: &View<'_>, metric: &Metric) -> Option<Figure> {
    let lines: Vec<Line> = (0..view.policies.len())
        .map(|policy| Line::new(view, policy, metric))
        .filter(|line| !line.estimates.is_empty())
        .collect();
    if lines.is_empty() {
        return None;
    }
    let values = view.axis.as_deref();
    let is_continuous = values.is_some();
    let frame = frame(view, &lines, values, metric);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    frame.draw_y(&mut svg, &frame.y.ticks(4), metric.unit);
    let places: Vec<f64> = (0..view.points.len()).map(|at| place(view, at)).collect();
    let names: Vec<&str> = view.points.iter().map(|point| point.label).collect();
    let ticks = ticks_at(&frame.x, &places, &names, frame.width);
    frame.draw_x(&mut svg, &ticks, view.axis_label());
    if is_continuous {
        lines
            .iter()
            .for_each(|line| line.draw_band(&mut svg, &frame, view));
    }
    for line in &lines {
        let aside = if is_continuous { 0.0 } else { line.aside(view) };
        line.draw(&mut svg, &frame, view, metric, is_continuous, aside);
    }
    draw_names(&mut svg, &frame, view, &lines);
    let label = in_words(view, metric, &lines);
    let note = format!("{}{}", metric.note, direction(metric.better));
    Some(Figure::new(metric.title, &note, svg.finish(&label)))
}

/// One policy.
struct Line {
    policy: usize,
    /// By point, where there is one.
    estimates: Vec<(usize, Estimate)>,
}

/// Where a point is on the axis: at its value, or at its position.
fn place(view: &View<'_>, point: usize) -> f64 {
    match &view.axis {
        Some(values) => values[point],
        None => point as f64,
    }
}

fn frame(view: &View<'_>, lines: &[Line], values: Option<&[f64]>, metric: &Metric) -> Frame {
    let widest = lines
        .iter()
        .map(|line| text_width(&line.name(view)))
        .fold(0.0, f64::max);
    let left = 46.0;
    let x = match values {
        Some(values) => along(values),
        None => Scale::linear(-0.5, view.points.len() as f64 - 0.5),
    };
    let all: Vec<f64> = lines.iter().flat_map(Line::reach).collect();
    let zero = metric.better == Better::Lower || metric.unit == "/s";
    let fitted = match metric.unit {
        " ms" => Scale::fitting(&all, zero, 4),
        _ => Scale::around(all, zero, 4),
    };
    Frame {
        left,
        top: 12.0,
        width: WIDTH - left - 16.0 - widest,
        height: HEIGHT - 12.0 - 44.0,
        x,
        y: within(fitted, metric),
    }
}

/// Equal steps of a factor are equal on the axis.
pub(super) fn along(values: &[f64]) -> Scale {
    let (first, last) = (values[0], values[values.len() - 1]);
    let steps = values.windows(2).map(|pair| pair[1] - pair[0]);
    let (least, most) = steps.fold((f64::INFINITY, 0.0_f64), |(least, most), step| {
        (least.min(step), most.max(step))
    });
    match first > 0.0 && most >= 4.0 * least {
        true => Scale::Log {
            low: first,
            high: last,
        },
        false => Scale::linear(first, last),
    }
}

/// No ticks where no value can be: below 0, above 100 %.
fn within(scale: Scale, metric: &Metric) -> Scale {
    let most = if metric.unit == " %" {
        100.0
    } else {
        f64::INFINITY
    };
    match scale {
        Scale::Linear { low, high } => Scale::linear(low.max(0.0), high.min(most)),
        log => log,
    }
}

fn direction(better: Better) -> &'static str {
    match better {
        Better::Higher => " — higher is better",
        Better::Lower => " — lower is better",
        Better::Neither => "",
    }
}

// === impl Line ===

impl Line {
    fn new(view: &View<'_>, policy: usize, metric: &Metric) -> Self {
        let points = 0..view.points.len();
        let estimate = |point| Some((point, view.estimate(point, policy, metric)?));
        Self {
            policy,
            estimates: points.filter_map(estimate).collect(),
        }
    }

    fn name(&self, view: &View<'_>) -> String {
        shortened(view.policies[self.policy], NAME_MAX)
    }

    /// Ends of the confidence intervals.
    fn reach(&self) -> impl Iterator<Item = f64> {
        self.estimates.iter().flat_map(|(_, estimate)| {
            let half = estimate.half_width.unwrap_or(0.0);
            [
                (estimate.mean - half).max(0.0),
                estimate.mean,
                estimate.mean + half,
            ]
        })
    }

    /// Points beside each other where there is no line to tell them apart.
    fn aside(&self, view: &View<'_>) -> f64 {
        let middle = (view.policies.len() as f64 - 1.0) / 2.0;
        (self.policy as f64 - middle) * 0.5 / view.policies.len() as f64
    }

    fn draw_band(&self, svg: &mut Svg, frame: &Frame, view: &View<'_>) {
        let edge = |sign: f64| {
            self.estimates.iter().filter_map(move |(point, estimate)| {
                let (low, high) = frame.y.ends();
                let y = (estimate.mean + sign * estimate.half_width?).clamp(low, high);
                Some(frame.place(place(view, *point), y))
            })
        };
        let mut upper: Vec<_> = edge(1.0).collect();
        let lower: Vec<_> = edge(-1.0).collect();
        upper.extend(lower.into_iter().rev());
        svg.open(&policy_class(self.policy));
        svg.path("band", &upper, true);
        svg.close();
    }

    fn draw(
        &self,
        svg: &mut Svg,
        frame: &Frame,
        view: &View<'_>,
        metric: &Metric,
        is_continuous: bool,
        aside: f64,
    ) {
        svg.open(&policy_class(self.policy));
        let at = |(point, estimate): &(usize, Estimate)| {
            frame.place(place(view, *point) + aside, estimate.mean)
        };
        if is_continuous {
            for part in self.estimates.chunk_by(|a, b| a.0 + 1 == b.0) {
                svg.path("line", &part.iter().map(at).collect::<Vec<_>>(), false);
            }
        }
        for known in &self.estimates {
            let (x, y) = at(known);
            if let (false, Some(half)) = (is_continuous, known.1.half_width) {
                let ends = (frame.y(known.1.mean - half), frame.y(known.1.mean + half));
                svg.line("whisker", (x, ends.0), (x, ends.1));
            }
            let (point, policy) = (view.points[known.0].name, view.policies[self.policy]);
            let title = format!("{policy}, {point}: {}", told(&known.1, metric));
            svg.marker(self.policy, (x, y), 3.4, &title);
        }
        svg.close();
    }
}

/// Each name at the end of its line, moved where others stand.
fn draw_names(svg: &mut Svg, frame: &Frame, view: &View<'_>, lines: &[Line]) {
    let ends: Vec<f64> = lines
        .iter()
        .map(|line| {
            line.estimates
                .last()
                .map_or(0.0, |(_, last)| frame.y(last.mean) + 4.0)
        })
        .collect();
    let placed = spread(&ends, frame.top + 4.0, frame.bottom() + 4.0);
    for (line, y) in lines.iter().zip(placed) {
        svg.open(&policy_class(line.policy));
        svg.text(
            "name",
            (frame.right() + 10.0, y),
            Anchor::Start,
            &line.name(view),
        );
        svg.close();
    }
}

/// A value with its interval.
pub(super) fn told(estimate: &Estimate, metric: &Metric) -> String {
    let (mean, unit) = (brief(estimate.mean), metric.unit);
    match estimate.half_width {
        Some(half) => format!("{mean} ± {}{unit}", brief(half)),
        None => format!("{mean}{unit}"),
    }
}

fn in_words(view: &View<'_>, metric: &Metric, lines: &[Line]) -> String {
    let (title, axis) = (metric.title, view.axis_label());
    let told = lines.iter().map(|line| {
        let value = |(point, estimate): &(usize, Estimate)| {
            let label = view.points[*point].label;
            format!("{}{} at {label}", brief(estimate.mean), metric.unit)
        };
        let ends = [line.estimates.first(), line.estimates.last()];
        let ends: Vec<String> = ends.into_iter().flatten().map(value).collect();
        format!("{}: {}", view.policies[line.policy], ends.join(", "))
    });
    let told: Vec<String> = told.collect();
    format!("{title} against {axis}. {}.", told.join("; "))
}
