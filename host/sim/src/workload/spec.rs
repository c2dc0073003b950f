//! Workloads as one line of text:
//!
//! ```text
//! WORKLOAD = STREAM [; STREAM]...
//! STREAM   = [APP= | *=] PROCESS[:ARGUMENTS] [@OPTION]...
//! OPTION   = deadline=LAW | mix=APP:WEIGHT,APP:WEIGHT... | length=LENGTH[:WEIGHT],... | known
//! ```
//! `poisson:200` is for all apps, `*=window:4x100ms` is one process for each of them,
//! `heart=poisson:50@deadline=slo*1.5;fall=trace:day.json` names them.

use std::path::PathBuf;
use std::str::FromStr;

use switchyard_core::time::Micros;

use super::arrivals::{Arrivals, Phase};
use super::deadline::Deadline;
use super::error::WorkloadError;
use super::stream::{Apps, LengthShare, RequestStream, Workload};

const PROCESSES: &str =
    "poisson, gamma, erlang, periodic, mmpp, phases, window, burst, trace (map: as JSON)";

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let streams = text.split(';').map(str::trim).filter(|s| !s.is_empty());
        let streams: Vec<RequestStream> = streams.map(str::parse).collect::<Result<_, _>>()?;
        if streams.is_empty() {
            return Err(WorkloadError::value("spec", "is empty"));
        }
        Ok(Self { streams })
    }
}

impl FromStr for RequestStream {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let mut parts = text.split('@');
        let (apps, process) = split_app(parts.next().unwrap_or_default());
        let mut stream = Self {
            apps,
            arrivals: process.parse()?,
            deadline: Deadline::Slo,
            lengths: Vec::new(),
            known: false,
        };
        for option in parts {
            match option.split_once('=') {
                Some(("deadline", law)) => stream.deadline = law.parse()?,
                Some(("length", lengths)) => stream.lengths = parse_lengths(lengths)?,
                Some(("mix", mix)) => stream.apps = parse_mix(mix)?,
                None if option == "known" => stream.known = true,
                _ => {
                    return Err(WorkloadError::Unknown {
                        part: format!("@{option}"),
                        found: option.to_owned(),
                        expected: "deadline=..., mix=..., length=..., known",
                    });
                }
            }
        }
        Ok(stream)
    }
}

impl FromStr for Arrivals {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let (name, arguments) = text.split_once(':').unwrap_or((text, ""));
        let arguments = SpecArguments { name, arguments };
        let arrivals = match name {
            "poisson" => {
                let [rate] = arguments.numbers(["rate"])?;
                Self::Poisson { rate }
            }
            "periodic" => {
                let [rate] = arguments.numbers(["rate"])?;
                Self::Periodic { rate }
            }
            "gamma" => {
                let [rate, shape] = arguments.numbers(["rate", "shape"])?;
                Self::Gamma { rate, shape }
            }
            "erlang" => {
                let [rate, stages] = arguments.numbers(["rate", "stages"])?;
                let stages = arguments.whole("stages", stages)?;
                Self::Erlang { rate, stages }
            }
            "mmpp" => arguments.mmpp()?,
            "phases" => arguments.phases()?,
            "window" => {
                let (count, length_us) = arguments.times("count", arguments.arguments)?;
                let count = arguments.whole("count", count)?;
                Self::Window { count, length_us }
            }
            "burst" => arguments.burst()?,
            "trace" if !arguments.arguments.is_empty() => {
                Self::File(PathBuf::from(arguments.arguments))
            }
            "trace" => return Err(arguments.value("file", "is missing; write trace:FILE")),
            _ => {
                return Err(WorkloadError::Unknown {
                    part: "arrival process".to_owned(),
                    found: name.to_owned(),
                    expected: PROCESSES,
                });
            }
        };
        arrivals.validate()?;
        Ok(arrivals)
    }
}

impl FromStr for Deadline {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let arguments = SpecArguments {
            name: "deadline",
            arguments: text,
        };
        let law = if text == "slo" {
            Self::Slo
        } else if let Some(factor) = text.strip_prefix("slo*") {
            Self::Scaled(arguments.number("slo*", factor)?)
        } else if let Some(law) = text.strip_prefix("normal:") {
            let Some((mean, sd)) = law.split_once(',') else {
                return Err(arguments.value(
                    "normal",
                    "write normal:MEAN,DEVIATION, such as normal:150ms,20ms",
                ));
            };
            Self::Normal {
                mean_us: arguments.length("mean", mean)?,
                sd_us: arguments.length("deviation", sd)?,
            }
        } else {
            Self::Fixed(arguments.length("length", text)?)
        };
        law.validate()?;
        Ok(law)
    }
}

/// An `=` before any `:` names the app.
fn split_app(text: &str) -> (Apps, &str) {
    let process_from = text.find(':').unwrap_or(text.len());
    match text[..process_from].split_once('=') {
        None => (Apps::All, text),
        Some(("*", _)) => (Apps::Each, &text[2..]),
        Some((app, _)) => {
            let one = [(app.trim().to_owned(), 1.0)];
            (Apps::Mix(one.into()), &text[app.len() + 1..])
        }
    }
}

fn parse_mix(text: &str) -> Result<Apps, WorkloadError> {
    let arguments = SpecArguments {
        name: "mix",
        arguments: text,
    };
    let weights = text.split(',').map(|part| {
        let (app, weight) = part
            .split_once(':')
            .ok_or_else(|| arguments.value(part, "write mix=APP:WEIGHT,APP:WEIGHT"))?;
        Ok((app.trim().to_owned(), arguments.number(app, weight)?))
    });
    Ok(Apps::Mix(weights.collect::<Result<_, _>>()?))
}

fn parse_lengths(text: &str) -> Result<Vec<LengthShare>, WorkloadError> {
    let arguments = SpecArguments {
        name: "length",
        arguments: text,
    };
    let shares = arguments.list().into_iter().map(|part| {
        let (length, weight) = part.split_once(':').unwrap_or((part, "1"));
        let number = arguments.number("length", length)?;
        Ok(LengthShare {
            length: arguments.whole("length", number)?,
            weight: arguments.number(length, weight)?,
        })
    });
    shares.collect()
}

/// The text behind the name of a process or a law.
#[derive(Clone, Copy)]
struct SpecArguments<'a> {
    name: &'a str,
    arguments: &'a str,
}

// === impl SpecArguments ===

impl SpecArguments<'_> {
    fn value(&self, field: &str, reason: impl Into<String>) -> WorkloadError {
        WorkloadError::value(format!("{}.{field}", self.name), reason)
    }

    fn number(&self, field: &str, text: &str) -> Result<f64, WorkloadError> {
        let text = text.trim();
        text.parse()
            .map_err(|_| self.value(field, format!("`{text}` is not a number")))
    }

    fn whole(&self, field: &str, value: f64) -> Result<u32, WorkloadError> {
        if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.value(field, format!("{value} is not a whole number")))
    }

    fn length(&self, field: &str, text: &str) -> Result<Micros, WorkloadError> {
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = match &text[digits.len()..] {
            "us" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            "m" => 6e7,
            "h" => 3.6e9,
            _ => {
                let reason = format!("`{text}` is not a time such as 100ms (us, ms, s, m, h)");
                return Err(self.value(field, reason));
            }
        };
        let us = self.number(field, digits)? * scale;
        if !(0.0..1e18).contains(&us) {
            return Err(self.value(field, format!("`{text}` is out of range")));
        }
        // Rounded: the binary form of 27.8 is smaller than 27.8.
        Ok(Micros((us + 0.5) as u64))
    }

    /// `NUMBERxTIME`
    fn times(&self, field: &str, text: &str) -> Result<(f64, Micros), WorkloadError> {
        let Some((number, length)) = text.split_once('x') else {
            let reason = format!(
                "`{text}` is not {}xTIME, such as 12x100ms",
                field.to_uppercase()
            );
            return Err(self.value(field, reason));
        };
        Ok((self.number(field, number)?, self.length("time", length)?))
    }

    fn list(&self) -> Vec<&str> {
        let all = self.arguments.split(',').map(str::trim);
        all.filter(|part| !part.is_empty()).collect()
    }

    fn numbers<const N: usize>(&self, fields: [&str; N]) -> Result<[f64; N], WorkloadError> {
        let list = self.list();
        if list.len() != N {
            let (name, form) = (self.name, fields.join(",").to_uppercase());
            let reason = format!("write {name}:{form}; it has {} of {N} numbers", list.len());
            return Err(WorkloadError::value(name, reason));
        }
        let mut numbers = [0.0; N];
        for (i, number) in numbers.iter_mut().enumerate() {
            *number = self.number(fields[i], list[i])?;
        }
        Ok(numbers)
    }

    fn mmpp(&self) -> Result<Arrivals, WorkloadError> {
        let list = self.list();
        if list.len() < 4 || !list.len().is_multiple_of(2) {
            let reason =
                "write mmpp:RATE,RATE,LEAVE,LEAVE: a rate per phase, then a leaving rate per phase";
            return Err(WorkloadError::value(self.name, reason));
        }
        let (rates, leave) = list.split_at(list.len() / 2);
        let numbers = |field, texts: &[&str]| -> Result<Vec<f64>, WorkloadError> {
            texts.iter().map(|text| self.number(field, text)).collect()
        };
        Ok(Arrivals::Mmpp {
            rates: numbers("rate", rates)?,
            leave: numbers("leave", leave)?,
        })
    }

    fn phases(&self) -> Result<Arrivals, WorkloadError> {
        let phases = self.list().into_iter().map(|part| {
            let (rate, length_us) = self.times("rate", part)?;
            Ok(Phase { rate, length_us })
        });
        Ok(Arrivals::Phases(phases.collect::<Result<_, _>>()?))
    }

    fn burst(&self) -> Result<Arrivals, WorkloadError> {
        let [rate, burst] = self.list()[..] else {
            let reason = "write burst:RATE,SIZExTIME, such as burst:50,20x1s";
            return Err(WorkloadError::value(self.name, reason));
        };
        let (size, every_us) = self.times("size", burst)?;
        Ok(Arrivals::Burst {
            rate: self.number("rate", rate)?,
            size: self.whole("size", size)?,
            every_us,
        })
    }
}
