//! Windows computed by hand from the paper's definitions, and the search against brute force.

#![allow(clippy::unwrap_used)]

mod baselines;
mod mapping;
mod positions;
mod slicing;
mod windows;

use switchyard_sdk::bindings::exports::switchyard::policy::scheduling as raw;
use switchyard_sdk::testing::{Batch, CatalogBuilder, Decisions, WindowBuilder, run};
use switchyard_sdk::{Catalog, Policy};

use super::*;

/// Three workers of three kinds and two apps: `long` takes 40, 60 and 100 ms, `short` 30, 10 and 20
/// ms. An SLO is 10 times the least latency.
fn test_bed() -> CatalogBuilder {
    CatalogBuilder::new()
        .app("long", &["x"])
        .slo_us(400_000)
        .variant("long", &[0.9])
        .max_batch(1)
        .latency_on("a", 40_000, 0)
        .latency_on("b", 60_000, 0)
        .latency_on("c", 100_000, 0)
        .app("short", &["x"])
        .slo_us(100_000)
        .variant("short", &[0.9])
        .max_batch(1)
        .latency_on("a", 30_000, 0)
        .latency_on("b", 10_000, 0)
        .latency_on("c", 20_000, 0)
        .worker_of("a", "a")
        .worker_of("b", "b")
        .worker_of("c", "c")
}

/// Columns of placed requests, without rows.
fn no_rows() -> raw::Placed {
    raw::Placed {
        id: Vec::new(),
        app: Vec::new(),
        arrival: Vec::new(),
        deadline: Vec::new(),
        worker: Vec::new(),
        variant: Vec::new(),
        batch: Vec::new(),
        state: Vec::new(),
    }
}

fn decide(catalog: &Catalog, json: &str, window: WindowBuilder<'_>) -> Decisions {
    let mut policy = Mael::configure(catalog, json).unwrap();
    run(&mut policy, catalog, &window.build())
}

/// Each request with its worker, by id.
fn workers(decisions: &Decisions) -> Vec<(u64, u32)> {
    let of = |batch: &Batch| (batch.requests[0], batch.worker);
    let mut all: Vec<_> = decisions.batches.iter().map(of).collect();
    all.sort_unstable();
    all
}
