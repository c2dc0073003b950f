//! The share of optimal schedules that group requests (SneakPeek section 5.2).
//!
//! `cargo bench --workspace --bench optima`
//!
//! Windows of two requests of each application, uniform in 100 ms, with deadlines around 150 ms after
//! the arrival. Every order, model and batch is tried for the highest mean utility (eq. 3); the accuracy of
//! a model is its recall of the request's class. An optimum groups by application if the requests of each
//! follow each other with one model, and by label if those of each application and class do. A window
//! counts as grouped if one of its optima is. `crowded` has the latencies of `gpu.json`, the others those
//! of `profile.json` times ten, as windows and deadlines are; batches grow alike.

use std::error::Error;
use std::path::Path;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, WorkerId};
use switchyard_core::time::Micros;
use switchyard_sim::random::{Purpose, Stream};
use switchyard_simulate::{Prepared, SimulationRequest, words};

const SEEDS: u64 = 10;
const WINDOWS: usize = 200;
const OF_EACH_APP: usize = 2;
const WINDOW_US: f64 = 100_000.0;
/// Mean and deviation of deadlines.
const DEADLINE_US: (f64, f64) = (150_000.0, 30_000.0);
/// Factor on the latencies of `gpu.json`, which are 32 times `profile.json`'s for one request.
const SCALE: f64 = 10.0 / 32.0;
/// Utilities this close are equal.
const EQUAL: f64 = 1e-9;

/// A request; times from the window's start.
struct Asked {
    app: usize,
    class: usize,
    arrival_us: f64,
    deadline_us: f64,
}

/// A model of an application, whole.
struct Choice {
    /// By batch, from 1.
    latency_us: Vec<f64>,
    load_us: f64,
    recall: Vec<f64>,
}

/// The search of one window.
struct Search<'a> {
    catalog: &'a Catalog,
    choices: &'a [Vec<Choice>],
    asked: &'a [Asked],
    /// The highest accuracy of each request.
    highest: Vec<f64>,
    /// Whether a change of model loads it (eq. 1).
    swaps: bool,
    best: f64,
    /// Request and model, in order.
    chosen: Vec<(usize, usize)>,
    /// Optima are looked at instead of searched.
    looks: bool,
    by_app: bool,
    by_label: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/paper/sneakpeek");
    let name = "*=window:2x100ms";
    let workload = words::workload(name)?;
    let request = SimulationRequest::new(root.join("gpu.json"), workload, name.to_owned());
    let prepared = Prepared::try_new(SimulationRequest {
        config: Some(root.join("test-bed-gpu.toml")),
        ..request
    })?;
    let scenario = &prepared.points[0].scenario;
    let mut runs = Vec::new();
    for (policy, swaps, scale) in [
        ("swaps", true, SCALE),
        ("resident", false, SCALE),
        ("crowded", true, 1.0),
    ] {
        let choices = choices(&scenario.catalog, scale);
        let seeds: Vec<[f64; 2]> = (0..SEEDS)
            .map(|seed| {
                shares(
                    &scenario.catalog,
                    &scenario.class_mixes,
                    &choices,
                    swaps,
                    seed,
                )
            })
            .collect();
        let of = |at: usize| seeds.iter().map(|shares| shares[at]).collect::<Vec<_>>();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (app, label) = (of(0), of(1));
        runs.push(serde_json::json!({
            "point": "",
            "policy": policy,
            "estimates": {"by_app": {"mean": mean(&app)}, "rest_by_label": {"mean": mean(&label)}},
            "by_seed": {"by_app": app, "rest_by_label": label},
        }));
    }
    println!("{}", serde_json::json!({ "runs": runs }));
    Ok(())
}

/// The models of each application, by their last exits; times are multiplied by `scale`.
fn choices(catalog: &Catalog, scale: f64) -> Vec<Vec<Choice>> {
    let worker = WorkerId(0);
    let kind = catalog.workers[0].kind;
    let of_app = |app: usize| {
        let variants = catalog.variants_of(AppId(app as u32));
        let choice = variants.filter_map(|(id, variant)| {
            let exit = variant.last_exit();
            let latency = |batch| {
                let latency = catalog.latency(worker, id, exit, batch)?;
                Some(latency.0 as f64 * scale)
            };
            Some(Choice {
                latency_us: (1..=OF_EACH_APP as u32)
                    .map(latency)
                    .collect::<Option<_>>()?,
                load_us: catalog.profile.load_time(kind, id).0 as f64 * scale,
                recall: variant.exits[exit.index()].recall.clone(),
            })
        });
        choice.collect()
    };
    (0..catalog.apps.len()).map(of_app).collect()
}

/// Share of the windows that group by application, and of the others that group by label.
fn shares(
    catalog: &Catalog,
    mixes: &[Vec<f64>],
    choices: &[Vec<Choice>],
    swaps: bool,
    seed: u64,
) -> [f64; 2] {
    let mut stream = Stream::new(seed, Purpose::Arrivals, 0);
    let (mut by_app, mut by_label) = (0.0, 0.0);
    for _ in 0..WINDOWS {
        let asked = drawn(mixes, &mut stream);
        let mut search = Search::new(catalog, choices, &asked, swaps);
        search.run();
        match (search.by_app, search.by_label) {
            (true, _) => by_app += 1.0,
            (false, true) => by_label += 1.0,
            (false, false) => {}
        }
    }
    let all = WINDOWS as f64;
    [by_app / all, by_label / (all - by_app).max(1.0)]
}

fn drawn(mixes: &[Vec<f64>], stream: &mut Stream) -> Vec<Asked> {
    let mut asked = Vec::new();
    for (app, mix) in mixes.iter().enumerate() {
        let mut sum = 0.0;
        let sums: Vec<f64> = mix
            .iter()
            .map(|share| {
                sum += share;
                sum
            })
            .collect();
        for _ in 0..OF_EACH_APP {
            let deadline_us = DEADLINE_US.0 + DEADLINE_US.1 * stream.normal();
            asked.push(Asked {
                app,
                class: stream.pick(&sums),
                arrival_us: stream.uniform() * WINDOW_US,
                deadline_us: deadline_us.max(1_000.0),
            });
        }
    }
    asked
}

// === impl Search ===

impl<'a> Search<'a> {
    fn new(
        catalog: &'a Catalog,
        choices: &'a [Vec<Choice>],
        asked: &'a [Asked],
        swaps: bool,
    ) -> Self {
        let highest = |asked: &Asked| {
            let recalls = choices[asked.app].iter();
            recalls
                .map(|choice| choice.recall[asked.class])
                .fold(0.0, f64::max)
        };
        Self {
            highest: asked.iter().map(highest).collect(),
            catalog,
            choices,
            asked,
            swaps,
            best: 0.0,
            chosen: Vec::new(),
            looks: false,
            by_app: false,
            by_label: false,
        }
    }

    /// Finds the highest utility, then looks at the schedules that reach it.
    fn run(&mut self) {
        let all = (1u32 << self.asked.len()) - 1;
        self.extend(all, WINDOW_US, None, 0.0);
        self.looks = true;
        self.extend(all, WINDOW_US, None, 0.0);
    }

    fn extend(&mut self, left: u32, now_us: f64, last: Option<(usize, usize)>, utility: f64) {
        let is_left = |at: &usize| left >> at & 1 == 1;
        let requests: Vec<usize> = (0..self.asked.len()).filter(is_left).collect();
        let bound = utility + requests.iter().map(|&at| self.highest[at]).sum::<f64>();
        let is_cut = match self.looks {
            true => bound < self.best - EQUAL || self.by_app,
            false => bound <= self.best,
        };
        if is_cut {
            return;
        }
        if requests.is_empty() {
            match self.looks {
                true => self.look(),
                false => self.best = utility,
            }
            return;
        }
        let (choices, asked) = (self.choices, self.asked);
        for batch in self.batches(&requests) {
            let app = asked[batch[0]].app;
            let penalty = self.catalog.apps[app].penalty;
            for (model, choice) in choices[app].iter().enumerate() {
                let is_same = last == Some((app, model));
                let load_us = if is_same || !self.swaps {
                    0.0
                } else {
                    choice.load_us
                };
                let end_us = now_us + load_us + choice.latency_us[batch.len() - 1];
                let micros = |us: f64| Micros(us as u64);
                let gained = batch.iter().map(|&at| {
                    let after = micros(end_us - asked[at].arrival_us);
                    let loss = penalty.loss(micros(asked[at].deadline_us), after);
                    choice.recall[asked[at].class] * (1.0 - loss)
                });
                let utility = utility + gained.sum::<f64>();
                let rest = batch.iter().fold(left, |left, at| left & !(1 << at));
                self.chosen.extend(batch.iter().map(|&at| (at, model)));
                self.extend(rest, end_us, Some((app, model)), utility);
                self.chosen.truncate(self.chosen.len() - batch.len());
            }
        }
    }

    /// Every batch of one application's requests.
    fn batches(&self, requests: &[usize]) -> Vec<Vec<usize>> {
        let sets = 1..1u32 << requests.len();
        let chosen = |set: u32| {
            let of_set = (0..requests.len()).filter(|at| set >> at & 1 == 1);
            of_set.map(|at| requests[at]).collect::<Vec<_>>()
        };
        let is_one_app = |batch: &Vec<usize>| {
            let app = self.asked[batch[0]].app;
            batch.iter().all(|&at| self.asked[at].app == app)
        };
        sets.map(chosen).filter(is_one_app).collect()
    }

    fn look(&mut self) {
        self.by_app |= self.groups(|asked| (asked.app, 0));
        self.by_label |= self.groups(|asked| (asked.app, asked.class));
    }

    /// Whether requests with the same key follow each other with one model.
    fn groups(&self, key: impl Fn(&Asked) -> (usize, usize)) -> bool {
        let mut groups: Vec<((usize, usize), usize)> = Vec::new();
        for &(at, model) in &self.chosen {
            let group = (key(&self.asked[at]), model);
            let is_known = groups.iter().any(|(known, _)| *known == group.0);
            match groups.last() == Some(&group) {
                true => {}
                false if is_known => return false,
                false => groups.push(group),
            }
        }
        true
    }
}
