//! `--plot`: every curve as shares of its peak.

use switchyard_sim::plot::{
    Chart, LineChart, LinePoint, LineSeries, Scale, SeriesId, Tick, stacked,
};

use super::report::{Curve, CurvePoint, OverloadReport};

const TITLE: &str = "Answers in time past capacity";

// === impl OverloadReport ===

impl OverloadReport {
    /// The figure as an SVG file: a panel for virtual time and one for HTTP.
    pub(crate) fn figure(&self) -> String {
        let multiple =
            |point: &CurvePoint| point.load.map_or(String::new(), |load| format!("{load}"));
        let simulated = panel("load, 1 at the peak", &self.simulated, multiple);
        let live = panel("connections", &self.live, |point| {
            format!("{:.0}", point.at)
        });
        let panels = [("Simulated", simulated), ("Over HTTP", live)];
        let panels: Vec<(&str, &dyn Chart)> = panels
            .iter()
            .filter(|(_, chart)| !chart.series.is_empty())
            .map(|(name, chart)| -> (&str, &dyn Chart) { (name, chart) })
            .collect();
        let words: Vec<String> = panels
            .iter()
            .map(|(name, chart)| format!("{name}: {}", chart.in_words()))
            .collect();
        stacked(TITLE, &panels).standalone(&format!("{TITLE}. {}", words.join(" ")))
    }
}

/// The points of all curves are at the same loads, in equal steps.
fn panel(x_title: &str, curves: &[Curve], label: impl Fn(&CurvePoint) -> String) -> LineChart {
    let longest = curves.iter().max_by_key(|curve| curve.points.len());
    let points = longest.map_or(&[][..], |curve| &curve.points);
    let line = |(id, curve): (SeriesId, &Curve)| {
        let points = (0_u32..).zip(curve.shares()).map(|(step, (point, share))| {
            let tip = format!("{}: {:.0}/s", curve.policy, point.goodput_per_s);
            LinePoint::new(f64::from(step), 100.0 * share).with_tip(tip)
        });
        LineSeries::new(id, curve.policy.clone(), points)
    };
    let ticks = (0_u32..).zip(points).map(|(step, point)| Tick {
        value: f64::from(step),
        label: label(point),
    });
    LineChart {
        x_title: x_title.to_owned(),
        y_title: "% of the peak so far".to_owned(),
        x: Scale::linear(0.0, points.len().saturating_sub(1) as f64),
        y: Scale::linear(0.0, 100.0),
        x_ticks: ticks.collect(),
        series: (0..).map(SeriesId).zip(curves).map(line).collect(),
        names: true,
        ..LineChart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_lines_over_loads_in_equal_steps() {
        let point = |load: f64, goodput_per_s: f64| CurvePoint {
            at: 2_083.0 * load,
            load: Some(load),
            goodput_per_s,
            ..CurvePoint::default()
        };
        let points = vec![
            point(2.0, 2_000.0),
            point(2.5, 1_500.0),
            point(10.0, 2_100.0),
        ];
        let report = OverloadReport {
            simulated: vec![Curve::simulated("fcfs", points)],
            live: Vec::new(),
        };
        let figure = report.figure();
        for shown in [">2<", ">2.5<", ">10<", "fcfs: 1500/s", "Simulated"] {
            assert!(figure.contains(shown), "{shown}: {figure}");
        }
        assert!(!figure.contains("Over HTTP"), "{figure}");
    }
}
