//! `--plot`: every curve as shares of its peak.

use switchyard_sim::plot::{
    Chart, LineChart, LinePoint, LineSeries, Scale, SeriesId, Tick, stacked,
};

use super::report::{Curve, OverloadReport};

const TITLE: &str = "Answers in time past capacity";

// === impl OverloadReport ===

impl OverloadReport {
    /// The figure as an SVG file: a panel for virtual time and one for HTTP.
    pub(crate) fn figure(&self) -> String {
        let multiple = |first: f64, at: f64| format!("{:.3}", at / first);
        let simulated = panel("load, 1 at the peak", &self.simulated, multiple);
        let live = panel("connections", &self.live, |_, at| format!("{at:.0}"));
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
fn panel(x_title: &str, curves: &[Curve], label: impl Fn(f64, f64) -> String) -> LineChart {
    let longest = curves.iter().max_by_key(|curve| curve.points.len());
    let points = longest.map_or(&[][..], |curve| &curve.points);
    let first = points.first().map_or(1.0, |point| point.at);
    let name = |at: f64| {
        let label = label(first, at);
        match label.contains('.') {
            true => label.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => label,
        }
    };
    let line = |(id, curve): (SeriesId, &Curve)| {
        let points = (0_u32..).zip(curve.shares()).map(|(step, (point, share))| {
            let tip = format!("{}: {:.0}/s", curve.policy, point.goodput_per_s);
            LinePoint::new(f64::from(step), 100.0 * share).with_tip(tip)
        });
        LineSeries::new(id, curve.policy.clone(), points)
    };
    let ticks = (0_u32..).zip(points).map(|(step, point)| Tick {
        value: f64::from(step),
        label: name(point.at),
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
    use super::super::report::CurvePoint;
    use super::*;

    #[test]
    fn curves_are_lines_over_loads_in_equal_steps() {
        let point = |at: f64, goodput_per_s: f64| CurvePoint {
            at,
            goodput_per_s,
            ..CurvePoint::default()
        };
        let points = vec![
            point(2_083.0, 2_000.0),
            point(2_499.6, 1_500.0),
            point(20_830.0, 2_100.0),
        ];
        let report = OverloadReport {
            simulated: vec![Curve::simulated("fcfs", points)],
            live: Vec::new(),
        };
        let figure = report.figure();
        for shown in [">1<", ">1.2<", ">10<", "fcfs: 1500/s", "Simulated"] {
            assert!(figure.contains(shown), "{shown}: {figure}");
        }
        assert!(!figure.contains("Over HTTP"), "{figure}");
    }
}
