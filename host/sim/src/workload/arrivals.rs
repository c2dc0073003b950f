//! Arrival processes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;

use super::checks::{drawn, not_negative, positive, some_rate};
use super::error::WorkloadError;
use super::silence::{check_cycle, check_matrices, check_phases};
use super::trace::Trace;

/// An arrival process. Rates are requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrivals {
    /// Independent arrivals, `poisson:RATE`.
    Poisson {
        /// Arrivals per second.
        rate: f64,
    },
    /// Gamma distributed gaps, `gamma:RATE,SHAPE`. Their coefficient of variation is
    /// `1 / sqrt(shape)`: below shape 1 burstier than Poisson, above it smoother.
    Gamma {
        /// Arrivals per second.
        rate: f64,
        /// Shape of the gaps' distribution.
        shape: f64,
    },
    /// Gaps of several exponential stages, `erlang:RATE,STAGES`.
    Erlang {
        /// Arrivals per second.
        rate: f64,
        /// Stages per gap.
        stages: u32,
    },
    /// Equal gaps, `periodic:RATE`.
    Periodic {
        /// Arrivals per second.
        rate: f64,
    },
    /// Markov-modulated Poisson, `mmpp:RATE,RATE,LEAVE,LEAVE`: phases take turns, each left
    /// at its own rate (PPO router section 4: `mmpp:180,10,0.036,0.002`).
    Mmpp {
        /// Arrivals per second in each phase.
        rates: Vec<f64>,
        /// Rate at which each phase is left, per second.
        leave: Vec<f64>,
    },
    /// A Markovian arrival process by its two matrices (rates per second): `d0` moves the
    /// phase without an arrival, `d1` with one; the rows of their sum add up to 0.
    Map {
        /// Transitions without an arrival, its diagonal negative.
        d0: Vec<Vec<f64>>,
        /// Transitions with an arrival.
        d1: Vec<Vec<f64>>,
    },
    /// Phases of fixed rate and length in a cycle, Poisson inside each: `phases:180x27.8s,10x500s`
    /// (the PPO router's non-Markovian workload).
    Phases(Vec<Phase>),
    /// A fixed number of arrivals, uniform in each window of fixed length, `window:12x100ms`
    /// (SneakPeek section 6).
    Window {
        /// Arrivals in each window.
        count: u32,
        /// Length of a window in microseconds.
        length_us: Micros,
    },
    /// Poisson arrivals, and bursts of simultaneous ones at a fixed interval: `burst:RATE,20x1s`.
    Burst {
        /// Arrivals per second between bursts, 0 for none.
        rate: f64,
        /// Arrivals in a burst.
        size: u32,
        /// Time between bursts in microseconds.
        every_us: Micros,
    },
    /// A trace in a file, `trace:FILE`; see [`Trace`] for the layouts.
    File(PathBuf),
    /// A trace in the workload itself.
    Trace(Trace),
}

/// A time with a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Arrivals per second.
    pub rate: f64,
    /// Its length in microseconds.
    pub length_us: Micros,
}

// === impl Arrivals ===

impl Arrivals {
    /// Name in specs and messages.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Poisson { .. } => "poisson",
            Self::Gamma { .. } => "gamma",
            Self::Erlang { .. } => "erlang",
            Self::Periodic { .. } => "periodic",
            Self::Mmpp { .. } => "mmpp",
            Self::Map { .. } => "map",
            Self::Phases(_) => "phases",
            Self::Window { .. } => "window",
            Self::Burst { .. } => "burst",
            Self::File(_) | Self::Trace(_) => "trace",
        }
    }

    /// Checks every number.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        let name = self.label();
        match self {
            Self::Poisson { rate } | Self::Periodic { rate } => positive(name, "rate", *rate),
            Self::Gamma { rate, shape } => {
                positive(name, "rate", *rate)?;
                positive(name, "shape", *shape)
            }
            Self::Erlang { rate, stages } => {
                positive(name, "rate", *rate)?;
                drawn(name, "stages", *stages)
            }
            Self::Mmpp { rates, leave } => {
                if rates.len() != leave.len() || rates.len() < 2 {
                    let reason = "needs one leaving rate per rate, at least two of each";
                    return Err(WorkloadError::value(format!("{name}.leave"), reason));
                }
                check_phases(name, rates.len())?;
                for (i, &leave) in leave.iter().enumerate() {
                    positive(name, &format!("leave[{i}]"), leave)?;
                }
                some_rate(name, "rates", rates.iter().copied())?;
                check_cycle(
                    name,
                    rates.iter().zip(leave).map(|(rate, leave)| rate / leave),
                )
            }
            Self::Map { d0, d1 } => check_map(d0, d1),
            Self::Phases(phases) => {
                for (i, phase) in phases.iter().enumerate() {
                    positive(name, &format!("[{i}].length_us"), phase.length_us.0 as f64)?;
                }
                some_rate(name, "rate", phases.iter().map(|phase| phase.rate))?;
                let seconds = |length_us: Micros| length_us.0 as f64 / 1e6;
                let arrivals = phases.iter().map(|p| p.rate * seconds(p.length_us));
                check_cycle(name, arrivals)
            }
            Self::Window { count, length_us } => {
                drawn(name, "count", *count)?;
                positive(name, "length_us", length_us.0 as f64)
            }
            Self::Burst {
                rate,
                size,
                every_us,
            } => {
                drawn(name, "size", *size)?;
                positive(name, "every_us", every_us.0 as f64)?;
                not_negative(name, "rate", *rate)
            }
            Self::File(_) => Ok(()),
            Self::Trace(trace) => trace.validate("trace"),
        }
    }

    /// The time at which a trace ends, exclusive; none for processes without an end.
    pub(super) fn trace_length(&self) -> Result<Option<Micros>, WorkloadError> {
        match self {
            Self::File(path) => Ok(Some(Trace::load(path)?.length())),
            Self::Trace(trace) => Ok(Some(trace.length())),
            _ => Ok(None),
        }
    }
}

fn check_map(d0: &[Vec<f64>], d1: &[Vec<f64>]) -> Result<(), WorkloadError> {
    let phases = d0.len();
    if phases == 0 || d1.len() != phases {
        let reason = "needs one row per row of d0, at least one";
        return Err(WorkloadError::value("map.d1", reason));
    }
    check_phases("map", phases)?;
    for (i, (row0, row1)) in d0.iter().zip(d1).enumerate() {
        for (name, row) in [("d0", row0), ("d1", row1)] {
            if row.len() != phases {
                let reason = format!("needs {phases} numbers, has {}", row.len());
                return Err(WorkloadError::value(format!("map.{name}[{i}]"), reason));
            }
            for (j, &rate) in row.iter().enumerate() {
                if (name, i) != ("d0", j) {
                    not_negative("map", &format!("{name}[{i}][{j}]"), rate)?;
                }
            }
        }
        let sum: f64 = row0.iter().chain(row1).sum();
        let scale = row0[i].abs().max(1.0);
        if !sum.is_finite() || sum.abs() > 1e-6 * scale || row0[i] >= 0.0 {
            let reason = format!("with d1[{i}] must add up to 0, adds up to {sum}");
            return Err(WorkloadError::value(format!("map.d0[{i}]"), reason));
        }
    }
    some_rate("map", "d1", d1.iter().flatten().copied())?;
    check_matrices("map", d0, d1)
}
