//! What accuracy costs in violations: the curve of each policy through the points of the sweep.

use super::figure::{Figure, HEIGHT, WIDTH};
use super::frame::Frame;
use super::labels::Placer;
use super::lines::told;
use super::metric::{ACCURACY, VIOLATIONS};
use super::palette::policy_class;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::text::shortened;
use super::view::View;
use crate::metrics::Estimate;

/// Radius of the marker of the first point and of the last.
const RADII: (f64, f64) = (2.4, 5.4);

/// A place of a policy: the point, violations and accuracy.
type Place = (usize, Estimate, Estimate);

/// The plot, where any policy answered anything.
pub(super) fn plot(view: &View<'_>) -> Option<Figure> {
    let curves: Vec<(usize, Vec<Place>)> = (0..view.policies.len())
        .map(|policy| (policy, places(view, policy)))
        .filter(|(_, places)| !places.is_empty())
        .collect();
    if curves.is_empty() {
        return None;
    }
    let frame = frame(&curves);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    frame.draw_y(&mut svg, &frame.y.ticks(4), " %");
    frame.draw_x(&mut svg, &frame.x.ticks(5), "violations, %");
    let mut placer = Placer::new([frame.left, frame.top, frame.width, frame.height]);
    for (policy, places) in &curves {
        draw(&mut svg, &frame, view, *policy, places);
        for place in places {
            placer.avoid(at(&frame, place), 6.0);
        }
    }
    // The corner is named last, where nothing else stands.
    draw_names(&mut svg, &frame, view, &curves, &mut placer);
    let note = match view.is_sweep() {
        true => format!("up and left is better; marks grow with {}", parameter(view)),
        false => "up and left is better".to_owned(),
    };
    let label = in_words(view, &curves);
    Some(Figure::new(
        "Accuracy against violations",
        &note,
        svg.finish(&label),
    ))
}

fn parameter<'a>(view: &View<'a>) -> &'a str {
    match &view.data.meta.axis {
        Some(axis) => &axis.name,
        None => view.axis_label(),
    }
}

fn places(view: &View<'_>, policy: usize) -> Vec<Place> {
    let place = |point| {
        let violations = view.estimate(point, policy, &VIOLATIONS)?;
        Some((point, violations, view.estimate(point, policy, &ACCURACY)?))
    };
    (0..view.points.len()).filter_map(place).collect()
}

fn frame(curves: &[(usize, Vec<Place>)]) -> Frame {
    let all = || curves.iter().flat_map(|(_, places)| places);
    let reach = |estimate: &Estimate| {
        let half = estimate.half_width.unwrap_or(0.0);
        [
            (estimate.mean - half).max(0.0),
            (estimate.mean + half).min(100.0),
        ]
    };
    let left = 46.0;
    Frame {
        left,
        top: 12.0,
        width: WIDTH - left - 14.0,
        height: HEIGHT - 12.0 - 44.0,
        x: Scale::around(all().flat_map(|place| reach(&place.1)), true, 5),
        y: Scale::around(all().flat_map(|place| reach(&place.2)), false, 4),
    }
}

fn at(frame: &Frame, place: &Place) -> (f64, f64) {
    frame.place(place.1.mean, place.2.mean)
}

fn draw(svg: &mut Svg, frame: &Frame, view: &View<'_>, policy: usize, places: &[Place]) {
    svg.open(&policy_class(policy));
    let line: Vec<_> = places.iter().map(|place| at(frame, place)).collect();
    svg.path("line thin", &line, false);
    for place in places {
        let (x, y) = at(frame, place);
        let (_, violations, accuracy) = place;
        if let Some(half) = violations.half_width {
            let [low, high] = [-half, half].map(|by| frame.x((violations.mean + by).max(0.0)));
            svg.line("whisker faint", (low, y), (high, y));
        }
        if let Some(half) = accuracy.half_width {
            let [low, high] = [-half, half].map(|by| frame.y(accuracy.mean + by));
            svg.line("whisker faint", (x, low), (x, high));
        }
    }
    for place in places {
        let title = format!(
            "{}, {}: accuracy {}, violations {}",
            view.policies[policy],
            view.points[place.0].name,
            told(&place.2, &ACCURACY),
            told(&place.1, &VIOLATIONS),
        );
        svg.marker(policy, at(frame, place), radius(view, place.0), &title);
    }
    svg.close();
}

fn radius(view: &View<'_>, point: usize) -> f64 {
    match view.points.len() {
        1 => 4.6,
        points => RADII.0 + (RADII.1 - RADII.0) * point as f64 / (points - 1) as f64,
    }
}

fn draw_names(
    svg: &mut Svg,
    frame: &Frame,
    view: &View<'_>,
    curves: &[(usize, Vec<Place>)],
    placer: &mut Placer,
) {
    for (policy, places) in curves {
        let Some(last) = places.last() else { continue };
        let name = shortened(view.policies[*policy], 18);
        let place = placer.place(at(frame, last), &name);
        svg.open(&policy_class(*policy));
        svg.text("name halo", place, Anchor::Start, &name);
        svg.close();
    }
}

fn in_words(view: &View<'_>, curves: &[(usize, Vec<Place>)]) -> String {
    let told = curves.iter().map(|(policy, places)| {
        let ends = [places.first(), places.last().filter(|_| places.len() > 1)];
        let ends = ends.into_iter().flatten().map(|place| {
            let (accuracy, violations) = (told(&place.2, &ACCURACY), told(&place.1, &VIOLATIONS));
            format!(
                "{} {accuracy} at {violations} violations",
                view.points[place.0].name
            )
        });
        format!(
            "{}: {}",
            view.policies[*policy],
            ends.collect::<Vec<_>>().join(", ")
        )
    });
    let told: Vec<String> = told.collect();
    format!(
        "Expected accuracy against the share of violations. {}.",
        told.join("; ")
    )
}
