//! The tables of the measurement.

use std::fmt;

use comfy_table::{Table, presets};
use serde::Serialize;

/// All curves.
#[derive(Debug, Default, Serialize)]
pub(crate) struct OverloadReport {
    /// In virtual time, by policy.
    pub(crate) simulated: Vec<Curve>,
    /// Over HTTP, by policy.
    pub(crate) live: Vec<Curve>,
}

/// One policy's curve.
#[derive(Debug, Serialize)]
pub(crate) struct Curve {
    pub(crate) policy: String,
    /// Most answers in time per second at any load.
    pub(crate) peak_per_s: f64,
    pub(crate) points: Vec<CurvePoint>,
}

/// One load, or one number of connections.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct CurvePoint {
    /// Requests per second, or connections.
    pub(crate) at: f64,
    /// Answers in time per second.
    pub(crate) goodput_per_s: f64,
    /// Faults of the policy.
    pub(crate) faults: u64,
    /// Answers in time per second, by the clients' clocks.
    pub(crate) seen_per_s: Option<f64>,
    /// All replies per second.
    pub(crate) replies_per_s: Option<f64>,
    /// The slowest answer of `/v2/health/live`, in milliseconds.
    pub(crate) health_ms: Option<f64>,
    /// The server's memory, in MiB.
    pub(crate) memory_mib: Option<f64>,
}

// === impl Curve ===

impl Curve {
    /// A curve with at least this peak.
    pub(crate) fn new(policy: &str, peak_per_s: f64, points: Vec<CurvePoint>) -> Self {
        let rates = points.iter().map(|point| point.goodput_per_s);
        Self {
            policy: policy.to_owned(),
            peak_per_s: rates.fold(peak_per_s, f64::max),
            points,
        }
    }
}

// === impl OverloadReport ===

impl OverloadReport {
    /// The points with less than this share of their policy's peak. Few connections do not fill a
    /// server, so the first and the last point of a live curve are left out.
    pub(crate) fn below(&self, least: f64) -> Vec<String> {
        let simulated = self
            .simulated
            .iter()
            .map(|curve| (curve, curve.points.as_slice()));
        let live = self.live.iter().map(|curve| {
            let last = curve.points.len().saturating_sub(1);
            (curve, curve.points.get(1..last).unwrap_or_default())
        });
        let points = simulated.chain(live);
        let points = points.flat_map(|(curve, points)| points.iter().map(move |it| (curve, it)));
        let low = points.filter(|(curve, point)| point.goodput_per_s < least * curve.peak_per_s);
        low.map(|(curve, point)| {
            let share = share(point.goodput_per_s, curve.peak_per_s);
            format!("{} at {:.0}: {share} of its peak", curve.policy, point.at)
        })
        .collect()
    }
}

impl fmt::Display for OverloadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.simulated.is_empty() {
            writeln!(
                f,
                "simulated: answers in time per second, and their share of the peak"
            )?;
            let mut table = table([
                "policy",
                "load",
                "offered/s",
                "in time/s",
                "of peak",
                "faults",
            ]);
            for curve in &self.simulated {
                let first = curve.points.first().map_or(1.0, |point| point.at);
                for point in &curve.points {
                    table.add_row([
                        curve.policy.clone(),
                        format!("{:.1}x", point.at / first),
                        format!("{:.0}", point.at),
                        format!("{:.0}", point.goodput_per_s),
                        share(point.goodput_per_s, curve.peak_per_s),
                        point.faults.to_string(),
                    ]);
                }
            }
            writeln!(f, "{table}")?;
        }
        if !self.live.is_empty() {
            writeln!(
                f,
                "live: connections that send again once they are answered"
            )?;
            let mut table = table([
                "policy",
                "connections",
                "replies/s",
                "in time/s",
                "of peak",
                "seen in time/s",
                "health ms",
                "MiB",
                "faults",
            ]);
            let number = |value: Option<f64>| value.map_or(String::new(), |it| format!("{it:.0}"));
            for curve in &self.live {
                for point in &curve.points {
                    table.add_row([
                        curve.policy.clone(),
                        format!("{:.0}", point.at),
                        number(point.replies_per_s),
                        format!("{:.0}", point.goodput_per_s),
                        share(point.goodput_per_s, curve.peak_per_s),
                        number(point.seen_per_s),
                        number(point.health_ms),
                        number(point.memory_mib),
                        point.faults.to_string(),
                    ]);
                }
            }
            writeln!(f, "{table}")?;
        }
        Ok(())
    }
}

fn table<const N: usize>(names: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(names);
    table
}

fn share(part: f64, whole: f64) -> String {
    format!("{:.0} %", 100.0 * part / whole.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_highest_point() {
        let point = |at: f64, goodput_per_s| CurvePoint {
            at,
            goodput_per_s,
            ..CurvePoint::default()
        };
        let curve = Curve::new("p", 80.0, vec![point(100.0, 100.0), point(1_000.0, 95.0)]);
        let report = OverloadReport {
            simulated: vec![curve],
            live: Vec::new(),
        };
        let text = report.to_string();
        assert!(text.contains("10.0x") && text.contains("95 %"), "{text}");
    }
}
