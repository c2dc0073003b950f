//! Learning curves: what each update saw, as CSV and as a plot.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::learner::Seen;
use crate::plot::{self, Line, Panel, Place};
use crate::rollout::PHASES;

/// One update on the curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which one, from 1.
    pub update: u64,
    /// Slots learnt from until then.
    pub slots: u64,
    /// Mean reward of a slot (eq. 2).
    pub reward: f64,
    /// All requests, those of slots that began in the first phase, in the second; with the
    /// noise of training.
    pub parts: [Ratios; 3],
    /// Without noise, on arrivals kept apart for this, where it was looked at.
    pub validation: Option<Ratios>,
    /// There, by phase and model, the means of the smallest batch and of the largest; of networks
    /// that choose them.
    pub bounds: Vec<(f64, f64)>,
    /// Mean squared error of the values over their targets' variance.
    pub unexplained: f64,
    /// Share of the samples that were clipped.
    pub clipped: f64,
}

/// What counts, as shares of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Accuracy of what was in time.
    pub goodput: f64,
    /// Late or rejected.
    pub violation: f64,
    /// Answered by the first model.
    pub heavy: f64,
}

// === impl Point ===

impl Point {
    /// Of an update.
    #[must_use]
    pub fn new(update: u64, slots: u64, seen: &Seen) -> Self {
        let mut all = seen.counts[0];
        all.add(&seen.counts[1]);
        let parts = [all, seen.counts[0], seen.counts[1]].map(|slot| Ratios {
            goodput: slot.goodput_ratio(),
            violation: slot.violation_ratio(),
            heavy: slot.heavy_ratio(),
        });
        Self {
            update,
            slots,
            reward: seen.reward,
            parts,
            validation: None,
            bounds: Vec::new(),
            unexplained: seen.unexplained,
            clipped: seen.clipped,
        }
    }
}

/// The curve as CSV, with a head line.
#[must_use]
pub fn csv(points: &[Point]) -> String {
    let mut text = String::from(
        "update,slots,reward,goodput,violation,heavy,goodput_0,violation_0,heavy_0,\
         goodput_1,violation_1,heavy_1,validation_goodput,validation_violation,validation_heavy,\
         unexplained,clipped",
    );
    let pairs = points.iter().map(|point| point.bounds.len()).max();
    let pairs = pairs.unwrap_or(0);
    let models = (pairs / PHASES).max(1);
    for pair in 0..pairs {
        let (phase, model) = (pair / models, pair % models);
        let _ = write!(text, ",min_{phase}_{model},max_{phase}_{model}");
    }
    text.push('\n');
    for point in points {
        let _ = write!(text, "{},{},{:.4}", point.update, point.slots, point.reward);
        let parts = point.parts.iter().map(Some);
        for part in parts.chain([point.validation.as_ref()]) {
            let _ = match part {
                Some(r) => write!(text, ",{:.5},{:.5},{:.5}", r.goodput, r.violation, r.heavy),
                None => write!(text, ",,,"),
            };
        }
        let _ = write!(text, ",{:.4},{:.4}", point.unexplained, point.clipped);
        for pair in 0..pairs {
            let _ = match point.bounds.get(pair) {
                Some((min, max)) => write!(text, ",{min:.3},{max:.3}"),
                None => write!(text, ",,"),
            };
        }
        text.push('\n');
    }
    text
}

/// What a panel shows of an evaluation.
type Value = fn(&Ratios) -> f64;

const PANELS: [(&str, Value); 3] = [
    ("goodput ratio, %", |r| 100.0 * r.goodput),
    ("violation ratio, %", |r| 100.0 * r.violation),
    ("answered by the first model, %", |r| 100.0 * r.heavy),
];

/// All requests, and those of each phase.
const PARTS: [(&str, &str); 3] = [
    ("all", "#555555"),
    ("first phase", "#d55e00"),
    ("second phase", "#0072b2"),
];

/// Of what validation saw.
const CHECKED: &str = "#009e73";

/// The curve as a plot: goodput, violations and use of the first model against slots, each for
/// all requests, for the first phase and for the second, and what validation saw.
#[must_use]
pub fn svg(title: &str, points: &[Point]) -> String {
    drawn(title, &[points])
}

/// The same of trainings from different seeds: means, with the standard deviation around them.
/// Updates that not all of them have made are left out.
#[must_use]
pub fn svg_of_seeds(title: &str, curves: &[Vec<Point>]) -> String {
    let curves: Vec<&[Point]> = curves.iter().map(Vec::as_slice).collect();
    drawn(title, &curves)
}

fn drawn(title: &str, curves: &[&[Point]]) -> String {
    let updates = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    let line = |name: &'static str, colour, of: &dyn Fn(&Point) -> Option<f64>| Line {
        name,
        colour,
        places: (0..updates)
            .filter_map(|update| {
                let values = curves.iter().map(|curve| of(&curve[update]));
                let values: Vec<f64> = values.collect::<Option<_>>()?;
                let (y, deviation) = spread(&values);
                let x = curves[0][update].slots as f64 / 1e6;
                Some(Place { x, y, deviation })
            })
            .collect(),
    };
    let panels = PANELS.map(|(name, of)| {
        let parts = (0..).zip(PARTS);
        let parts = parts.map(|(p, (name, colour)): (usize, _)| {
            line(name, colour, &|point| Some(of(&point.parts[p])))
        });
        let checked = line("validation", CHECKED, &|point| {
            point.validation.as_ref().map(of)
        });
        Panel {
            name,
            lines: parts.chain([checked]).collect(),
        }
    });
    plot::svg(title, "million slots of training", &panels)
}

/// Mean and standard deviation; 0 of a single one.
fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Vec<Point> {
        let point = |update: u64| Point {
            update,
            slots: update * 50_000,
            validation: update.is_multiple_of(2).then(Ratios::default),
            bounds: match update.is_multiple_of(2) {
                true => vec![(1.0, 5.0); 4],
                false => Vec::new(),
            },
            ..Point::default()
        };
        (1..=4).map(point).collect()
    }

    #[test]
    fn every_line_of_the_csv_has_every_column() {
        let text = csv(&points());
        let columns = |line: &str| line.matches(',').count();
        let first = text.lines().next().map(columns);
        assert_eq!(text.lines().count(), 5);
        assert!(
            text.lines().all(|line| Some(columns(line)) == first),
            "{text}"
        );
        let last = text.lines().last();
        assert!(
            last.is_some_and(|line| line.ends_with(",1.000,5.000")),
            "{text}"
        );
        assert!(
            text.contains(",min_1_0,max_1_0,min_1_1,max_1_1\n"),
            "{text}"
        );
    }

    #[test]
    fn the_plot_is_drawn_with_no_points_too() {
        for points in [&[][..], &points()] {
            let text = svg("a < b", points);
            assert!(text.contains("a &lt; b") && !text.contains("NaN"), "{text}");
        }
        assert!(!svg_of_seeds("", &[]).contains("NaN"));
    }

    #[test]
    fn seeds_are_drawn_as_their_mean_and_how_far_they_are_from_it() {
        assert_eq!(spread(&[1.0, 3.0]), (2.0, 2.0_f64.sqrt()));
        assert_eq!(spread(&[5.0]), (5.0, 0.0));
        let (one, mut two) = (points(), points());
        two[1].parts[0].goodput = 0.5;
        let text = svg_of_seeds("two", &[one.clone(), two]);
        assert_eq!(
            text.matches("<polygon").count(),
            1,
            "one line differs: {text}"
        );
        assert!(!svg("one", &one).contains("<polygon"));
    }
}
