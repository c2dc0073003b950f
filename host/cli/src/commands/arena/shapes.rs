//! The shipped workloads: shapes of arrivals relative to a rate and to the length of a run.

use std::collections::BTreeMap;

use switchyard_core::time::Micros;
use switchyard_sim::Workload;
use switchyard_sim::workload::{Apps, Arrivals, Deadline, Phase, RequestStream, Trace};

/// A day of traffic in 24 intervals.
const DAY: &str = include_str!("../../../../../tests/paper/ramsis/trace.json");

/// Arrivals that come at once in `herd`.
const HERD: u32 = 16;

/// A shipped workload.
pub(super) struct Shape {
    pub(super) name: &'static str,
    /// In a few words.
    pub(super) title: &'static str,
    streams: fn(&ShapeInputs<'_>) -> Result<Vec<RequestStream>, String>,
}

/// The inputs of a shape.
pub(super) struct ShapeInputs<'a> {
    /// Mean arrivals per second.
    pub(super) rate: f64,
    /// Length of the run.
    pub(super) seconds: f64,
    /// The first app, which floods.
    pub(super) first_app: &'a str,
}

/// All of them, in the order of the scoreboard.
pub(super) const SHAPES: [Shape; 6] = [
    Shape {
        name: "steady",
        title: "Poisson arrivals",
        streams: |at| Ok(vec![all(Arrivals::Poisson { rate: at.rate })]),
    },
    Shape {
        name: "bursty",
        title: "gamma distributed gaps of shape 0.2",
        streams: |at| {
            let (rate, shape) = (at.rate, 0.2);
            Ok(vec![all(Arrivals::Gamma { rate, shape })])
        },
    },
    Shape {
        name: "phases",
        title: "two Poisson phases in random turn, at 0.2 and 1.8 of the mean rate",
        streams: |at| {
            let rates = vec![1.8 * at.rate, 0.2 * at.rate];
            let leave = vec![10.0 / at.seconds; 2];
            Ok(vec![all(Arrivals::Mmpp { rates, leave })])
        },
    },
    Shape {
        name: "flood",
        title: "half of the arrivals steady, half a flood of one app in a fifth of the time",
        streams: flood,
    },
    Shape {
        name: "herd",
        title: "half of the arrivals steady, half in groups of 16 at once",
        streams: |at| {
            let rate = 0.5 * at.rate;
            Ok(vec![all(Arrivals::Burst {
                rate,
                size: HERD,
                every_us: micros(f64::from(HERD) / rate),
            })])
        },
    },
    Shape {
        name: "day",
        title: "a day of traffic with a spike, compressed to the length of the run",
        streams: day,
    },
];

// === impl Shape ===

impl Shape {
    /// The shape of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    /// The workload at a rate.
    pub(super) fn workload(&self, inputs: &ShapeInputs<'_>) -> Result<Workload, String> {
        let streams = (self.streams)(inputs)?;
        Ok(Workload { streams })
    }
}

fn flood(at: &ShapeInputs<'_>) -> Result<Vec<RequestStream>, String> {
    let phase = |rate: f64, share: f64| Phase {
        rate,
        length_us: micros(share * at.seconds),
    };
    let one = BTreeMap::from([(at.first_app.to_owned(), 1.0)]);
    let floods = vec![phase(0.0, 0.08), phase(2.5 * at.rate, 0.02)];
    Ok(vec![
        all(Arrivals::Poisson {
            rate: 0.5 * at.rate,
        }),
        stream(Apps::Mix(one), Arrivals::Phases(floods)),
    ])
}

fn day(at: &ShapeInputs<'_>) -> Result<Vec<RequestStream>, String> {
    let recorded: Trace = serde_json::from_str(DAY).map_err(|error| format!("day: {error}"))?;
    let qps = recorded.qps.unwrap_or_default();
    let mean = qps.iter().sum::<f64>() / qps.len() as f64;
    let trace = Trace {
        interval_s: Some(at.seconds / qps.len() as f64),
        qps: Some(qps.iter().map(|qps| qps * at.rate / mean).collect()),
        ..Trace::default()
    };
    Ok(vec![all(Arrivals::Trace(trace))])
}

fn all(arrivals: Arrivals) -> RequestStream {
    stream(Apps::All, arrivals)
}

fn stream(apps: Apps, arrivals: Arrivals) -> RequestStream {
    RequestStream {
        apps,
        arrivals,
        deadline: Deadline::Slo,
        lengths: Vec::new(),
        known: false,
    }
}

/// At least a microsecond.
fn micros(seconds: f64) -> Micros {
    Micros(((seconds * 1e6).round() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::rate::mean_per_s;
    use super::*;

    #[test]
    fn every_shape_has_the_rate_that_is_asked_for() {
        for shape in &SHAPES {
            let inputs = ShapeInputs {
                rate: 160.0,
                seconds: 20.0,
                first_app: "heart",
            };
            let workload = shape.workload(&inputs).expect("a workload");
            let mean = mean_per_s(&workload, 3).expect("a rate");
            assert!((mean - 160.0).abs() < 1e-6, "{}: {mean}", shape.name);
        }
    }
}
