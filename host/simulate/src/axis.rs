//! The parameter of a sweep and its values.

use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use switchyard_core::catalog::{App, Catalog, Penalty, SneakPeekModel};
use switchyard_core::time::Micros;
use switchyard_sim::{Scenario, SweepPoint};

use crate::apps::with_apps;
use crate::error::InputError;
use crate::workers::repeated;

/// Most values of one sweep.
const VALUES_MAX: usize = 1_000;

/// A parameter and its values, in order of the points.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The parameter.
    pub name: Parameter,
    /// As typed, or as the range makes them.
    values: Vec<String>,
}

/// The parameter of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Times the workload's rates.
    Load,
    /// Times each app's SLO.
    Deadline,
    /// Number of workers.
    Workers,
    /// Number of apps: the first ones, then copies.
    Apps,
    /// Neighbours that evidence counts.
    Neighbours,
    /// Accuracy of every app's SneakPeek model, the same for each class.
    Evidence,
    /// Shape of the penalty of every app.
    Penalty,
    /// Prior over the classes of every app.
    Prior,
}

const PARAMETERS: [Parameter; 8] = [
    Parameter::Load,
    Parameter::Deadline,
    Parameter::Workers,
    Parameter::Apps,
    Parameter::Neighbours,
    Parameter::Evidence,
    Parameter::Penalty,
    Parameter::Prior,
];

// === impl Parameter ===

impl Parameter {
    /// Name in commands and results.
    pub fn label(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Deadline => "deadline",
            Self::Workers => "workers",
            Self::Apps => "apps",
            Self::Neighbours => "k",
            Self::Evidence => "evidence",
            Self::Penalty => "penalty",
            Self::Prior => "prior",
        }
    }

    /// Label of an axis, with its unit.
    pub fn description(self) -> &'static str {
        match self {
            Self::Load => "load, times the workload's rates",
            Self::Deadline => "deadline, times each app's SLO",
            Self::Workers => "workers",
            Self::Apps => "applications",
            Self::Neighbours => "neighbours of the evidence, k",
            Self::Evidence => "accuracy of the evidence",
            Self::Penalty => "penalty",
            Self::Prior => "prior",
        }
    }
}

// === impl Axis ===

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text
            .split_once('=')
            .ok_or("must be NAME=VALUES, such as load=0.5:1.5:0.25")?;
        let name = PARAMETERS
            .into_iter()
            .find(|parameter| parameter.label() == name)
            .ok_or_else(|| {
                let known = PARAMETERS.map(Parameter::label).join(", ");
                format!("`{name}` cannot be swept; these can: {known}")
            })?;
        let values = match values.split(':').collect::<Vec<_>>().as_slice() {
            [from, to, step] => range(from, to, step)?,
            [list] => list
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect(),
            _ => return Err("values are A,B,C or FROM:TO:STEP".to_owned()),
        };
        Ok(Self { name, values })
    }
}

impl Axis {
    /// The scenario at every value.
    pub(crate) fn points(&self, base: &Scenario) -> Result<Vec<SweepPoint>, InputError> {
        let point = |value: &String| {
            let name = format!("{}={value}", self.name.label());
            let scenario = self.name.set(base, value);
            let scenario = scenario.and_then(|scenario| match scenario.validate() {
                Ok(()) => Ok(scenario),
                // Before the first run: a stream may name an app that this point lacks.
                Err(error) => Err(error.to_string()),
            });
            let scenario = scenario.map_err(|error| InputError::new(format!("{name}: {error}")))?;
            Ok(SweepPoint { name, scenario })
        };
        self.values.iter().map(point).collect()
    }
}

impl Parameter {
    fn set(self, base: &Scenario, value: &str) -> Result<Scenario, String> {
        let mut scenario = base.clone();
        if self == Self::Load {
            let scaled = base.workload.scaled(number(value)?);
            scenario.workload = scaled.map_err(|error| error.to_string())?;
            return Ok(scenario);
        }
        if self == Self::Apps {
            return with_apps(base, number(value)?);
        }
        let mut catalog = Catalog::clone(&base.catalog);
        match self {
            Self::Load | Self::Apps => {}
            Self::Deadline => {
                let factor: f64 = number(value)?;
                for app in &mut catalog.apps {
                    app.slo = Micros((app.slo.0 as f64 * factor).round() as u64);
                }
            }
            Self::Workers => {
                let count: usize = number(value)?;
                if count == 0 {
                    return Err("there must be a worker".to_owned());
                }
                catalog.workers = repeated(&catalog.workers, count);
            }
            Self::Neighbours => {
                let neighbours = number(value)?;
                for sneakpeek in sneakpeeks(&mut catalog) {
                    sneakpeek.neighbours = neighbours;
                }
            }
            Self::Evidence => {
                let accuracy: f64 = number(value)?;
                if !(0.0..=1.0).contains(&accuracy) {
                    return Err("an accuracy is 0 to 1".to_owned());
                }
                for sneakpeek in sneakpeeks(&mut catalog) {
                    sneakpeek.accuracy = accuracy;
                    sneakpeek.recall.fill(accuracy);
                    // A wrong answer is equally likely to be any other class.
                    sneakpeek.confusion = None;
                }
            }
            Self::Penalty => {
                let words: StrDeserializer<'_, ValueError> = value.into_deserializer();
                let penalty = Penalty::deserialize(words).map_err(|error| error.to_string())?;
                for app in &mut catalog.apps {
                    app.penalty = penalty;
                }
            }
            Self::Prior => {
                for app in &mut catalog.apps {
                    app.prior = prior(app, value)?;
                }
            }
        }
        scenario.catalog = Arc::new(catalog);
        Ok(scenario)
    }
}

fn sneakpeeks(catalog: &mut Catalog) -> impl Iterator<Item = &mut SneakPeekModel> {
    let apps = catalog.apps.iter_mut();
    apps.filter_map(|app| app.sneakpeek.as_mut())
}

/// Dirichlet parameters (SneakPeek section 4.1): `jeffreys`, `weak`, or `strong` with the
/// requests expected per window, as in `strong*12`.
fn prior(app: &App, value: &str) -> Result<Vec<f64>, String> {
    let scaled = |by: f64| app.frequencies.iter().map(|share| share * by).collect();
    match value.split_once('*') {
        None if value == "jeffreys" => Ok(vec![0.5; app.classes.len()]),
        None if value == "weak" => Ok(scaled(1.0)),
        Some(("strong", requests)) => Ok(scaled(number(requests)?)),
        _ => Err("a prior is jeffreys, weak or strong*REQUESTS".to_owned()),
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a valid number"))
}

/// Every value from `from` up to `to`, in decimal steps.
fn range(from: &str, to: &str, step: &str) -> Result<Vec<String>, String> {
    let decimals = [from, to, step].map(|text| text.split_once('.').map_or(0, |it| it.1.len()));
    let decimals = decimals.into_iter().max().unwrap_or(0);
    let (from, to, step): (f64, f64, f64) = (number(from)?, number(to)?, number(step)?);
    let count = ((to - from) / step + 1e-9).floor() + 1.0;
    if !(step > 0.0 && (1.0..=VALUES_MAX as f64).contains(&count)) {
        return Err(format!("FROM:TO:STEP must make 1 to {VALUES_MAX} values"));
    }
    let value = |i: usize| format!("{:.decimals$}", from + step * i as f64);
    Ok((0..count as usize).map(value).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Axis>().unwrap().values
    }

    #[test]
    fn values_are_listed_or_make_a_range() {
        assert_eq!(
            values("load=0.5:1.5:0.25"),
            ["0.50", "0.75", "1.00", "1.25", "1.50"]
        );
        assert_eq!(values("workers=1:3:1"), ["1", "2", "3"]);
        assert_eq!(values("penalty=step, linear"), ["step", "linear"]);
    }

    #[test]
    fn wrong_axes_are_refused() {
        let error = |text: &str| text.parse::<Axis>().unwrap_err();
        assert!(
            error("tau=1").contains("load, deadline, workers, apps, k, evidence, penalty, prior")
        );
        assert!(error("load").contains("NAME=VALUES"));
        assert!(error("load=1:2:0").contains("1 to 1000 values"));
        assert!(error("load=a:2:1").contains("`a`"));
        assert!(error("load=1:2").contains("FROM:TO:STEP"));
    }
}
