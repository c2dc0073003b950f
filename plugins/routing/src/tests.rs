//! Cases computed by hand: two heavy instances of 40 ms, two light ones of 10 ms, an SLO of 300 ms.

#![allow(clippy::unwrap_used)]

mod expelled;
mod routed;
mod single;

use switchyard_sdk::testing::{CatalogBuilder, Decisions, WindowBuilder, run};
use switchyard_sdk::{Catalog, Policy};

use super::*;

const HEAVY: u32 = 0;
const LIGHT: u32 = 1;

/// By default workers 0 and 1 serve the heavy variant, 2 and 3 the light one.
fn catalog() -> Catalog {
    let builder = CatalogBuilder::new()
        .app("image", &["x"])
        .slo_us(300_000)
        .variant("heavy", &[0.8])
        .max_batch(1)
        .latency(0, 40_000)
        .variant("light", &[0.7])
        .max_batch(1)
        .latency(0, 10_000);
    ["w0", "w1", "w2", "w3"]
        .iter()
        .fold(builder, |builder, name| builder.worker(name).queue_max(14))
        .build()
}

fn policy(catalog: &Catalog, json: &str) -> Routing {
    Routing::configure(catalog, json).unwrap()
}

fn decide(catalog: &Catalog, json: &str, window: WindowBuilder<'_>) -> Decisions {
    run(&mut policy(catalog, json), catalog, &window.build())
}

/// Worker, variant and weight of the lanes of the only route.
fn lanes(decisions: &Decisions) -> Vec<(u32, u32, f64)> {
    assert_eq!(decisions.routes.len(), 1, "{decisions:?}");
    let lanes = decisions.routes[0].lanes.iter();
    lanes.map(|l| (l.worker, l.variant, l.weight)).collect()
}
