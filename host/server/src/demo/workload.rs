//! When requests come and what is in them: a function of the seed.

use std::time::Duration;

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;
use serde_json::json;
use switchyard_models::data::{Generator, Mix};
use switchyard_models::heart::{CLASSES, Heart, workload_mix};

/// Calm and busy stretches take turns, each this long.
const STRETCH: Duration = Duration::from_millis(500);

/// Rates of the two, relative to the mean.
const CALM: f64 = 0.6;
const BUSY: f64 = 1.4;

/// Deadlines relative to the app's SLO; none: the request names no deadline.
const DEADLINES: [Option<f64>; 3] = [Some(0.7), None, Some(1.3)];

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// From the start of the phase.
    pub(super) at: Duration,
    /// The body.
    pub(super) body: Bytes,
    /// Length of its JSON part, for bodies with binary tensors.
    pub(super) json_length: Option<usize>,
    /// The right answer.
    pub(super) label: usize,
    /// The deadline from its arrival.
    pub(super) deadline: Duration,
}

/// Draws requests for the heart app.
pub(super) struct Workload {
    beats: Generator<'static>,
    rng: Pcg64,
    index: u64,
    slo: Duration,
    rate_per_s: f64,
}

// === impl Workload ===

impl Workload {
    /// Requests at a mean rate, in calm and busy stretches.
    pub(super) fn new(seed: u64, rate_per_s: f64, slo: Duration) -> Self {
        // Its shares are positive and few.
        let mix = Mix::try_new(&workload_mix()).unwrap_or_else(|_| Mix::balanced(CLASSES));
        Self {
            beats: Generator::new(&Heart, seed, mix),
            rng: Pcg64::seed_from_u64(seed),
            index: 0,
            slo,
            rate_per_s,
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

    fn request(&mut self, at: Duration) -> Request {
        let beat = self.beats.sample(self.index);
        self.index += 1;
        let deadline = DEADLINES[self.rng.random_range(0..DEADLINES.len())];
        let deadline = deadline.map(|share| self.slo.mul_f64(share));
        let (body, json_length) = encode(&beat.values, deadline, self.rng.random());
        Request {
            at,
            body,
            json_length,
            label: beat.label,
            deadline: deadline.unwrap_or(self.slo),
        }
    }
}

/// A v2 request, with the tensor as JSON or after it.
fn encode(samples: &[f32], deadline: Option<Duration>, binary: bool) -> (Bytes, Option<usize>) {
    let mut input = json!({"name": "beat", "shape": [1, samples.len()], "datatype": "FP32"});
    let mut parameters = json!({});
    if let Some(deadline) = deadline {
        parameters["timeout"] = json!(deadline.as_micros() as u64);
    }
    if binary {
        input["parameters"] = json!({"binary_data_size": size_of_val(samples)});
    } else {
        input["data"] = json!(samples);
    }
    let head = json!({
        "parameters": parameters,
        "inputs": [input],
        "outputs": [{"name": "label"}],
    });
    let mut body = head.to_string().into_bytes();
    if !binary {
        return (body.into(), None);
    }
    let json_length = body.len();
    body.extend(samples.iter().flat_map(|value| value.to_le_bytes()));
    (body.into(), Some(json_length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLO: Duration = Duration::from_millis(150);

    #[test]
    fn the_same_seed_gives_the_same_requests() {
        let phase = |seed| Workload::new(seed, 200.0, SLO).phase(Duration::from_secs(2));
        let (a, b, other) = (phase(1), phase(1), phase(2));
        let key = |r: &Request| (r.at, r.body.clone(), r.label, r.deadline);
        assert!(a.iter().map(key).eq(b.iter().map(key)));
        assert!(!a.iter().map(key).eq(other.iter().map(key)));
    }

    #[test]
    fn the_rate_is_the_mean_of_calm_and_busy_stretches() {
        let requests = Workload::new(3, 500.0, SLO).phase(Duration::from_secs(20));
        let rate = requests.len() as f64 / 20.0;
        assert!((rate - 500.0).abs() < 25.0, "{rate} per second");
        assert!(requests.is_sorted_by_key(|request| request.at));
        let binary = requests.iter().filter(|r| r.json_length.is_some()).count();
        assert!((0.4..0.6).contains(&(binary as f64 / requests.len() as f64)));
    }
}
