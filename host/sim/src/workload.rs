//! What arrives: streams of requests, each an arrival process, the apps it is for and the law
//! of its deadlines. As text (see [`spec`]) or as JSON.

mod error;
mod scale;
pub mod spec;
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use switchyard_core::time::Micros;

pub use error::WorkloadError;
pub use trace::{Recorded, Trace};

/// All streams of a run. `poisson:200` parses to one stream over all apps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The streams; their arrivals are independent.
    pub streams: Vec<Stream>,
}

/// Requests with one arrival process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Whom they are for.
    #[serde(default)]
    pub apps: Apps,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// By when they want an answer.
    #[serde(default)]
    pub deadline: Deadline,
    /// Windows show the process's own rate, at that moment, in the place of the measured one.
    #[serde(default)]
    pub known: bool,
}

/// Which apps a stream is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Apps {
    /// One process; each arrival is of any app of the catalog with the same chance.
    #[default]
    All,
    /// A process of its own for every app of the catalog.
    Each,
    /// One process; each arrival is of an app drawn by these weights.
    Mix(BTreeMap<String, f64>),
}

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
    /// Phases of fixed rate and length, over and over, Poisson inside each:
    /// `phases:180x27.8s,10x500s` (the PPO router's non-Markovian workload).
    Phases(Vec<Phase>),
    /// So many arrivals uniformly inside each window of fixed length, `window:12x100ms`
    /// (SneakPeek section 6).
    Window {
        /// Arrivals in each window.
        count: u32,
        /// Length of a window in microseconds.
        length_us: Micros,
    },
    /// Poisson arrivals and, every so often, many at once: `burst:RATE,20x1s`.
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
    /// A trace given here.
    Trace(Trace),
}

/// A stretch of constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Arrivals per second.
    pub rate: f64,
    /// Its length in microseconds.
    pub length_us: Micros,
}

/// The law of deadlines, from the arrival on. As an option of a stream: `@deadline=150ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Deadline {
    /// The app's SLO: `slo`.
    #[default]
    Slo,
    /// A multiple of the app's SLO: `slo*1.5`.
    Scaled(f64),
    /// The same for all: `150ms`.
    Fixed(Micros),
    /// Normal, `normal:150ms,20ms`; never below a tenth of the mean.
    Normal {
        /// Mean in microseconds.
        mean_us: Micros,
        /// Standard deviation in microseconds.
        sd_us: Micros,
    },
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
    /// Names the first one that makes no sense.
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
                positive(name, "stages", f64::from(*stages))
            }
            Self::Mmpp { rates, leave } => {
                if rates.len() != leave.len() || rates.len() < 2 {
                    let reason = "needs as many leaving rates as rates, two or more";
                    return Err(WorkloadError::value(format!("{name}.leave"), reason));
                }
                for (i, &leave) in leave.iter().enumerate() {
                    positive(name, &format!("leave[{i}]"), leave)?;
                }
                some_rate(name, "rates", rates.iter().copied())
            }
            Self::Map { d0, d1 } => check_map(d0, d1),
            Self::Phases(phases) => {
                for (i, phase) in phases.iter().enumerate() {
                    positive(name, &format!("[{i}].length_us"), phase.length_us.0 as f64)?;
                }
                some_rate(name, "rate", phases.iter().map(|phase| phase.rate))
            }
            Self::Window { count, length_us } => {
                positive(name, "count", f64::from(*count))?;
                positive(name, "length_us", length_us.0 as f64)
            }
            Self::Burst {
                rate,
                size,
                every_us,
            } => {
                positive(name, "size", f64::from(*size))?;
                positive(name, "every_us", every_us.0 as f64)?;
                not_negative(name, "rate", *rate)
            }
            Self::File(_) => Ok(()),
            Self::Trace(trace) => trace.validate("trace"),
        }
    }
}

// === impl Deadline ===

impl Deadline {
    /// Checks every number.
    ///
    /// # Errors
    /// Names the one that makes no sense.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        match *self {
            Self::Slo => Ok(()),
            Self::Scaled(factor) => positive("deadline", "slo*", factor),
            Self::Fixed(length) => positive("deadline", "fixed", length.0 as f64),
            Self::Normal { mean_us, .. } => positive("deadline", "mean_us", mean_us.0 as f64),
        }
    }
}

// === checks ===

fn positive(at: &str, field: &str, value: f64) -> Result<(), WorkloadError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    let reason = format!("must be positive, not {value}");
    Err(WorkloadError::value(format!("{at}.{field}"), reason))
}

fn not_negative(at: &str, field: &str, value: f64) -> Result<(), WorkloadError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    let reason = format!("must not be negative, but is {value}");
    Err(WorkloadError::value(format!("{at}.{field}"), reason))
}

fn some_rate(at: &str, field: &str, rates: impl Iterator<Item = f64>) -> Result<(), WorkloadError> {
    let mut any = false;
    for rate in rates {
        not_negative(at, field, rate)?;
        any |= rate > 0.0;
    }
    if any {
        return Ok(());
    }
    let reason = "at least one rate must be positive";
    Err(WorkloadError::value(format!("{at}.{field}"), reason))
}

fn check_map(d0: &[Vec<f64>], d1: &[Vec<f64>]) -> Result<(), WorkloadError> {
    let phases = d0.len();
    if phases == 0 || d1.len() != phases {
        let reason = "needs as many rows in d1 as in d0, one or more";
        return Err(WorkloadError::value("map.d1", reason));
    }
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
    some_rate("map", "d1", d1.iter().flatten().copied())
}
