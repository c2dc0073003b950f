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
    /// By load, ascending.
    pub(crate) points: Vec<CurvePoint>,
    /// Live: the first number of connections, after the others.
    pub(crate) recovered: Option<CurvePoint>,
}

/// The slowest health check that is accepted.
const HEALTH_MAX_MS: f64 = 50.0;

/// Memory for a connection with a waiting request of `heart`: its buffers, the request in the
/// scheduler, its input.
const CONNECTION_KIB: f64 = 32.0;

/// Memory that a first load takes and keeps: queues, kept windows, free lists of the allocator. After a
/// minute of 3,500 connections it grows no more.
const LOADED_MIB: f64 = 32.0;

/// Least share of the first goodput with as many connections after the load. Few connections do not
/// fill a server: their rate follows the latency and moves by a fifth between measurements.
const RECOVERED_LEAST: f64 = 0.7;

/// One load, or one number of connections.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct CurvePoint {
    /// Requests per second, or connections.
    pub(crate) at: f64,
    /// Simulated: multiple of the load at the peak.
    pub(crate) load: Option<f64>,
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
    /// Share of a core's time that the policy takes.
    pub(crate) policy_share: Option<f64>,
}

// === impl CurvePoint ===

impl CurvePoint {
    /// The measurement of the median goodput, with all faults, the slowest health check and the most
    /// memory; none without measurements.
    pub(super) fn median(measured: &[Self]) -> Option<Self> {
        let mut sorted: Vec<&Self> = measured.iter().collect();
        sorted.sort_by(|a, b| a.goodput_per_s.total_cmp(&b.goodput_per_s));
        let middle = *sorted.get(sorted.len() / 2)?;
        let most = |of: fn(&Self) -> Option<f64>| measured.iter().filter_map(of).reduce(f64::max);
        Some(Self {
            faults: measured.iter().map(|it| it.faults).sum(),
            health_ms: most(|it| it.health_ms),
            memory_mib: most(|it| it.memory_mib),
            ..middle.clone()
        })
    }
}

// === impl Curve ===

impl Curve {
    /// A curve in virtual time.
    pub(crate) fn simulated(policy: &str, points: Vec<CurvePoint>) -> Self {
        Self {
            policy: policy.to_owned(),
            points,
            recovered: None,
        }
    }

    /// The most answers in time per second at this point or one before it.
    fn peak_until(&self, point: usize) -> f64 {
        let points = self.points.iter().take(point + 1);
        points.map(|it| it.goodput_per_s).fold(0.0, f64::max)
    }

    /// Points and their share of the peak so far.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&CurvePoint, f64)> {
        let points = self.points.iter().enumerate();
        points.map(|(i, it)| {
            (
                it,
                it.goodput_per_s / self.peak_until(i).max(f64::MIN_POSITIVE),
            )
        })
    }

    fn collapses(&self, least: f64) -> impl Iterator<Item = String> {
        let low = self.shares().filter(move |(_, share)| *share < least);
        low.map(|(point, share)| {
            let (policy, at) = (&self.policy, point.at);
            format!("{policy} at {at:.0}: {} of its peak", percent(share))
        })
    }

    fn live_shortfalls(&self) -> impl Iterator<Item = String> {
        let policy = &self.policy;
        let slow = self.points.iter().filter_map(move |point| {
            let ms = point.health_ms.filter(|ms| *ms > HEALTH_MAX_MS)?;
            let at = point.at;
            Some(format!(
                "{policy} at {at:.0}: /v2/health/live took {ms:.0} ms, more than {HEALTH_MAX_MS:.0}"
            ))
        });
        let first = self.points.first();
        // The memory of many connections is kept when they go, for the next ones.
        let large = self.points.last().and_then(|point| {
            let (memory, bound) = point.memory_mib.zip(memory_bound_mib(first?, point))?;
            let at = point.at;
            (memory > 1.1 * bound).then(|| {
                format!("{policy} at {at:.0}: {memory:.0} MiB, more than {bound:.0} + 10 %")
            })
        });
        let lost = first
            .zip(self.recovered.as_ref())
            .and_then(|(first, last)| {
                let share = last.goodput_per_s / first.goodput_per_s.max(f64::MIN_POSITIVE);
                let text = format!(
                    "{policy} at {:.0} again: {} of before",
                    last.at,
                    percent(share)
                );
                (share < RECOVERED_LEAST).then_some(text)
            });
        slow.chain(large).chain(lost)
    }
}

/// The memory that a server may take with this many connections, by its memory with few.
fn memory_bound_mib(few: &CurvePoint, point: &CurvePoint) -> Option<f64> {
    let connections = point.at - few.at;
    Some(few.memory_mib? + LOADED_MIB + connections * CONNECTION_KIB / 1_024.0)
}

// === impl OverloadReport ===

impl OverloadReport {
    /// Goodput below this share of the peak at lower loads, slow health checks, memory above its
    /// bound, and few connections that get less at the end than at the beginning.
    pub(crate) fn shortfalls(&self, least: f64) -> Vec<String> {
        let curves = self.simulated.iter().chain(&self.live);
        let low = curves.flat_map(|curve| curve.collapses(least));
        let live = self.live.iter();
        low.chain(live.flat_map(Curve::live_shortfalls)).collect()
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
                for (point, share) in curve.shares() {
                    table.add_row([
                        curve.policy.clone(),
                        point.load.map_or(String::new(), |load| format!("{load}x")),
                        format!("{:.0}", point.at),
                        format!("{:.0}", point.goodput_per_s),
                        percent(share),
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
                "policy",
                "faults",
            ]);
            let number = |value: Option<f64>| value.map_or(String::new(), |it| format!("{it:.0}"));
            for curve in &self.live {
                let first = curve
                    .points
                    .first()
                    .map_or(0.0, |point| point.goodput_per_s);
                let again = curve
                    .recovered
                    .iter()
                    .map(|point| (point, point.goodput_per_s / first.max(f64::MIN_POSITIVE)));
                for (point, share) in curve.shares().chain(again) {
                    table.add_row([
                        curve.policy.clone(),
                        format!("{:.0}", point.at),
                        number(point.replies_per_s),
                        format!("{:.0}", point.goodput_per_s),
                        percent(share),
                        number(point.seen_per_s),
                        number(point.health_ms),
                        number(point.memory_mib),
                        point.policy_share.map_or(String::new(), percent),
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

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: f64, goodput_per_s: f64) -> CurvePoint {
        CurvePoint {
            at,
            goodput_per_s,
            ..CurvePoint::default()
        }
    }

    fn live(points: Vec<CurvePoint>, recovered: CurvePoint) -> OverloadReport {
        let curve = Curve {
            recovered: Some(recovered),
            ..Curve::simulated("p", points)
        };
        OverloadReport {
            simulated: Vec::new(),
            live: vec![curve],
        }
    }

    #[test]
    fn a_curve_that_falls_below_its_peak_is_reported() {
        let loaded = |load: f64, goodput_per_s: f64| CurvePoint {
            load: Some(load),
            ..point(100.0 * load, goodput_per_s)
        };
        let points = vec![loaded(2.0, 100.0), loaded(10.0, 85.0)];
        let report = OverloadReport {
            simulated: vec![Curve::simulated("p", points)],
            live: Vec::new(),
        };
        let text = report.to_string();
        for shown in [" 2x ", " 10x ", "85 %"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert_eq!(report.shortfalls(0.9), ["p at 1000: 85 % of its peak"]);
        assert!(report.shortfalls(0.8).is_empty());
    }

    #[test]
    fn a_curve_that_rises_does_not_fall_short() {
        let report = live(vec![point(8.0, 10.0), point(800.0, 90.0)], point(8.0, 10.0));
        assert!(report.shortfalls(0.9).is_empty());
    }

    #[test]
    fn a_server_that_does_not_recover_is_reported() {
        let report = live(vec![point(8.0, 10.0), point(800.0, 90.0)], point(8.0, 5.0));
        assert_eq!(report.shortfalls(0.9), ["p at 8 again: 50 % of before"]);
    }

    #[test]
    fn the_median_counts_with_the_slowest_health_check() {
        let measured = |goodput_per_s, health_ms, faults| CurvePoint {
            health_ms: Some(health_ms),
            faults,
            ..point(8.0, goodput_per_s)
        };
        let rounds = [
            measured(30.0, 1.0, 1),
            measured(10.0, 9.0, 0),
            measured(20.0, 2.0, 2),
        ];
        let median = CurvePoint::median(&rounds).unwrap();
        assert_eq!((median.goodput_per_s, median.faults), (20.0, 3));
        assert_eq!(median.health_ms, Some(9.0));
        assert!(CurvePoint::median(&[]).is_none());
    }

    #[test]
    fn slow_and_failed_health_checks_are_reported() {
        let checked = |ms| CurvePoint {
            health_ms: Some(ms),
            ..point(8.0, 10.0)
        };
        let report = |ms| live(vec![checked(ms)], point(8.0, 10.0)).shortfalls(0.9);
        assert!(report(49.0).is_empty());
        assert_eq!(report(51.0).len(), 1);
        assert_eq!(report(f64::INFINITY).len(), 1, "it failed");
    }

    #[test]
    fn memory_above_its_bound_is_reported() {
        let large = |mib| CurvePoint {
            memory_mib: Some(mib),
            ..point(1_032.0, 10.0)
        };
        let few = CurvePoint {
            memory_mib: Some(60.0),
            ..point(8.0, 10.0)
        };
        let report = |mib| live(vec![few.clone(), large(mib)], point(8.0, 10.0)).shortfalls(0.9);
        // 32 MiB, and 1,024 more connections of 32 KiB: 124 MiB.
        assert!(report(136.0).is_empty());
        assert_eq!(report(137.0), ["p at 1032: 137 MiB, more than 124 + 10 %"]);
    }
}
