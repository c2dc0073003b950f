//! Arrival times and contents of requests: a function of the seed.

use std::time::Duration;

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;
use serde_json::json;
use switchyard_models::card::TensorCard;
use switchyard_models::zoo::ZooApp;
use switchyard_training::data::{Generator, Mix};
use switchyard_training::train::recipe;

/// Length of the alternating calm and busy stretches.
const STRETCH: Duration = Duration::from_millis(500);

/// Their rates, relative to the mean.
const CALM: f64 = 0.6;
const BUSY: f64 = 1.4;

/// Longest input that may be sent as JSON; longer ones are always binary tensors.
const JSON_MAX: usize = 1_024;

/// Deadlines relative to the app's SLO; none: the request names no deadline.
const DEADLINES: [Option<f64>; 3] = [Some(0.7), None, Some(1.3)];

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// From the start of the phase.
    pub(super) at: Duration,
    /// Position of its app among those asked.
    pub(super) app: usize,
    /// The body.
    pub(super) body: Bytes,
    /// Length of its JSON part, for bodies with binary tensors.
    pub(super) json_length: Option<usize>,
    /// The right answer.
    pub(super) label: usize,
    /// The deadline from its arrival.
    pub(super) deadline: Duration,
}

/// An app with its rate of requests.
#[derive(Clone)]
pub(super) struct Asked {
    inputs: Vec<TensorCard>,
    samples: Generator<'static>,
    slo: Duration,
    rate_per_s: f64,
}

/// Draws requests for a number of apps.
pub(super) struct Workload {
    apps: Vec<Asked>,
    rng: Pcg64,
    index: u64,
    rate_per_s: f64,
}

// === impl Asked ===

impl Asked {
    /// Requests of `app` at a mean rate, their classes as its card expects them.
    pub(super) fn try_new(
        app: &ZooApp,
        seed: u64,
        rate_per_s: f64,
        slo: Duration,
    ) -> Result<Self, String> {
        let name = &app.card.name;
        let recipe = recipe(name).ok_or_else(|| {
            format!("app {name}: its inputs cannot be made, so the demo cannot show it")
        })?;
        let mix = Mix::try_new(&app.card.workload_mix)
            .map_err(|error| format!("app {name}, workload_mix: {error}"))?;
        Ok(Self {
            inputs: app.card.inputs.clone(),
            samples: Generator::new(recipe.data(), seed, mix),
            slo,
            rate_per_s,
        })
    }
}

// === impl Workload ===

impl Workload {
    /// Requests for these apps, in calm and busy stretches.
    pub(super) fn new(seed: u64, apps: Vec<Asked>) -> Self {
        Self {
            rng: Pcg64::seed_from_u64(seed),
            index: 0,
            rate_per_s: apps.iter().map(|app| app.rate_per_s).sum(),
            apps,
        }
    }

    /// Every request of a phase.
    pub(super) fn phase(&mut self, length: Duration) -> Vec<Request> {
        let mut requests = Vec::new();
        let mut at = Duration::ZERO;
        loop {
            let stretch = at.as_nanos() / STRETCH.as_nanos();
            let pace = if stretch.is_multiple_of(2) {
                CALM
            } else {
                BUSY
            };
            at += self.gap(pace);
            if at >= length {
                return requests;
            }
            let request = self.request(at);
            requests.push(request);
        }
    }

    /// The next request at the mean rate, and the time until it is due.
    pub(super) fn steady(&mut self) -> (Duration, Request) {
        let gap = self.gap(1.0);
        (gap, self.request(Duration::ZERO))
    }

    /// Exponential: arrivals of a stretch are Poisson.
    fn gap(&mut self, pace: f64) -> Duration {
        let unit: f64 = Exp1.sample(&mut self.rng);
        Duration::from_secs_f64(unit / (self.rate_per_s * pace))
    }

    /// A request for an app drawn in proportion to the rates: superposed Poisson arrivals.
    fn request(&mut self, at: Duration) -> Request {
        let mut left = self.rng.random::<f64>() * self.rate_per_s;
        let drawn = self.apps.iter().position(|app| {
            left -= app.rate_per_s;
            left < 0.0
        });
        let at_app = drawn.unwrap_or_default();
        let app = &self.apps[at_app];
        let sample = app.samples.sample(self.index);
        self.index += 1;
        let deadline = DEADLINES[self.rng.random_range(0..DEADLINES.len())];
        let deadline = deadline.map(|share| app.slo.mul_f64(share));
        let binary = self.rng.random() || sample.values.len() > JSON_MAX;
        let (body, json_length) = encode(&app.inputs, &sample.values, deadline, binary);
        Request {
            at,
            app: at_app,
            body,
            json_length,
            label: sample.label,
            deadline: deadline.unwrap_or(app.slo),
        }
    }
}

/// A v2 request, with the tensors in its JSON or after it.
fn encode(
    inputs: &[TensorCard],
    values: &[f32],
    deadline: Option<Duration>,
    binary: bool,
) -> (Bytes, Option<usize>) {
    let mut rest = values;
    let described = inputs.iter().map(|card| {
        let (values, after) = rest.split_at(card.width().min(rest.len()));
        rest = after;
        let shape: Vec<usize> = std::iter::once(1).chain(card.typical_shape()).collect();
        let mut input = json!({"name": card.name, "shape": shape, "datatype": "FP32"});
        if binary {
            input["parameters"] = json!({"binary_data_size": size_of_val(values)});
        } else {
            input["data"] = json!(values);
        }
        input
    });
    let described: Vec<_> = described.collect();
    let mut parameters = json!({});
    if let Some(deadline) = deadline {
        parameters["timeout"] = json!(deadline.as_micros() as u64);
    }
    let head = json!({
        "parameters": parameters,
        "inputs": described,
        "outputs": [{"name": "label"}],
    });
    let mut body = head.to_string().into_bytes();
    if !binary {
        return (body.into(), None);
    }
    let json_length = body.len();
    body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    (body.into(), Some(json_length))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use switchyard_models::Zoo;

    use super::*;

    fn workload(seed: u64, rates: &[(&str, f64)]) -> Workload {
        let zoo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/zoo");
        let zoo = Zoo::open(std::path::Path::new(zoo)).unwrap();
        let asked = rates.iter().map(|&(name, rate)| {
            let slo = Duration::from_millis(150);
            Asked::try_new(zoo.app(name).unwrap(), seed, rate, slo).unwrap()
        });
        Workload::new(seed, asked.collect())
    }

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        let phase = |seed| workload(seed, &[("heart", 200.0)]).phase(Duration::from_secs(2));
        let (a, b, other) = (phase(1), phase(1), phase(2));
        let key = |r: &Request| (r.at, r.body.clone(), r.label, r.deadline);
        assert!(a.iter().map(key).eq(b.iter().map(key)));
        assert!(!a.iter().map(key).eq(other.iter().map(key)));
    }

    #[test]
    fn the_rate_is_the_mean_of_calm_and_busy_stretches() {
        let requests = workload(3, &[("heart", 500.0)]).phase(Duration::from_secs(20));
        let rate = requests.len() as f64 / 20.0;
        assert!((rate - 500.0).abs() < 25.0, "{rate} per second");
        assert!(requests.is_sorted_by_key(|request| request.at));
        let binary = requests.iter().filter(|r| r.json_length.is_some()).count();
        assert!((0.4..0.6).contains(&(binary as f64 / requests.len() as f64)));
    }

    #[test]
    fn apps_are_asked_in_proportion_and_large_inputs_are_binary() {
        let requests =
            workload(5, &[("heart", 300.0), ("voice", 100.0)]).phase(Duration::from_secs(5));
        let voice: Vec<_> = requests.iter().filter(|request| request.app == 1).collect();
        let share = voice.len() as f64 / requests.len() as f64;
        assert!((0.2..0.3).contains(&share), "{share}");
        assert!(voice.iter().all(|request| request.json_length.is_some()));
    }
}
