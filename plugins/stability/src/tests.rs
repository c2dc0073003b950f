//! Cases computed by hand from the paper's equations, and scores against the plain sum.

#![allow(clippy::unwrap_used)]

mod baselines;
mod batches;
mod extensions;
mod rounds;
mod scores;

use switchyard_sdk::testing::{Batch, CatalogBuilder, Decisions, WindowBuilder, run};
use switchyard_sdk::{Catalog, Policy};

use super::*;

const EARLY: u32 = 0;
const FINAL: u32 = 1;

/// An app with one variant of two exits; an exit takes the same time for 1 to 10 requests. The SLO
/// is 50 ms.
fn with_app(builder: CatalogBuilder, name: &str, early_ms: u64, final_ms: u64) -> CatalogBuilder {
    let builder = builder
        .app(name, &["x", "y"])
        .slo_us(50_000)
        .variant(name, &[0.9, 0.9])
        .stages(2)
        .early_exit("early", 1, &[0.5, 0.5])
        .max_batch(10);
    [1, 10].into_iter().fold(builder, |builder, batch| {
        builder
            .stage_latency(0, 1, true, batch, early_ms * 1_000)
            .stage_latency(0, 2, true, batch, final_ms * 1_000)
    })
}

/// One worker, and apps as (name, latency of the early exit, latency of the last exit) in ms.
fn apps(apps: &[(&str, u64, u64)]) -> CatalogBuilder {
    let all = apps
        .iter()
        .fold(CatalogBuilder::new(), |builder, &(name, early, last)| {
            with_app(builder, name, early, last)
        });
    all.worker("gpu")
}

/// A window with one request per (app, wait in ms). Ids count from 1.
fn waiting<'a>(catalog: &'a Catalog, requests: &[(&str, u64)]) -> WindowBuilder<'a> {
    let window = WindowBuilder::new(catalog);
    requests.iter().fold(window, |window, &(app, waited_ms)| {
        window.request(app).age_us(waited_ms * 1_000)
    })
}

fn decide(catalog: &Catalog, json: &str, window: WindowBuilder<'_>) -> Decisions {
    let mut policy = Stability::configure(catalog, json).unwrap();
    run(&mut policy, catalog, &window.build())
}

/// Exit and requests of the only batch of a window of (app, wait in ms).
fn served(catalog: &Catalog, json: &str, requests: &[(&str, u64)]) -> (u32, Vec<u64>) {
    let decisions = decide(catalog, json, waiting(catalog, requests));
    assert_eq!(decisions.batches.len(), 1, "{decisions:?}");
    let Batch { exit, requests, .. } = decisions.batches[0].clone();
    (exit.unwrap(), requests)
}
