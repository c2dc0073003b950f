//! A network by hand on one heavy and one light instance with a capacity of three.

#![allow(clippy::unwrap_used)]

mod instances;
mod refused;
mod slots;

use ppo_router_net::meta::FORMAT;
use ppo_router_net::{Kind, Layout, Meta, Network};
use switchyard_sdk::host::native::put_artifact;
use switchyard_sdk::testing::{CatalogBuilder, Decisions, WindowBuilder, run};
use switchyard_sdk::{Catalog, Policy};

use super::*;

const HEAVY: u32 = 0;
const LIGHT: u32 = 1;

fn catalog() -> Catalog {
    CatalogBuilder::new()
        .app("image", &["x"])
        .slo_us(300_000)
        .variant("heavy", &[0.8])
        .max_batch(5)
        .latency(0, 40_000)
        .variant("light", &[0.7])
        .max_batch(5)
        .latency(0, 10_000)
        .worker("w0")
        .worker("w1")
        .build()
}

fn meta(kind: Kind, batches: &[u32]) -> Meta {
    let layout = Layout {
        kind,
        instances: 2,
        capacity: 3,
        elapsed_scale_us: 40_000,
        age_scale_us: 1_000_000,
        rate_scale: 180.0,
        phases: 2,
        phase_scale_us: 1_000_000,
        largest_batch: batches.last().copied().unwrap_or(0),
    };
    let mut meta = Meta {
        format: FORMAT,
        layers: vec![layout.width(), 0],
        models: vec![0, 1],
        variants: vec!["heavy".to_owned(), "light".to_owned()],
        batches: batches.to_vec(),
        slot_us: 1_000_000,
        deadline_us: 300_000,
        workload: "mmpp:180,10,0.036,0.002".to_owned(),
        seed: 7,
        command: "by hand".to_owned(),
        layout,
    };
    meta.layers[1] = meta.outputs();
    meta
}

/// One linear layer from weights (input, output, weight) and biases.
fn network(meta: Meta, weights: &[(usize, usize, f32)], biases: &[f32]) -> Network {
    let (inputs, outputs) = (meta.layers[0], meta.layers[1]);
    let mut all = vec![0.0; inputs * outputs];
    for &(input, output, weight) in weights {
        all[input * outputs + output] = weight;
    }
    Network::try_new(meta, vec![(all, biases.to_vec())]).unwrap()
}

fn install(network: &Network) {
    put_artifact("default/policy.safetensors", network.to_bytes().unwrap());
}

fn policy(catalog: &Catalog, json: &str) -> PpoRouter {
    PpoRouter::configure(catalog, json).unwrap()
}

/// Shares of 3 to 1.
fn three_to_one() -> Network {
    network(meta(Kind::Paper, &[]), &[], &[libm::logf(3.0), 0.0])
}

/// Worker, variant and weight of the lanes of the only route.
fn lanes(decisions: &Decisions) -> Vec<(u32, u32, f64)> {
    assert_eq!(decisions.routes.len(), 1, "{decisions:?}");
    let lanes = decisions.routes[0].lanes.iter();
    let rounded = |weight: f64| (weight * 1e4).round() / 1e4;
    lanes
        .map(|l| (l.worker, l.variant, rounded(l.weight)))
        .collect()
}
