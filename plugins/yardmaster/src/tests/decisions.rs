use switchyard_sdk::testing::{Batch, Decisions, WindowBuilder, run};
use switchyard_sdk::{Catalog, Policy};

use super::*;
use crate::Yardmaster;

fn decide(catalog: &Catalog, window: WindowBuilder<'_>) -> Decisions {
    let mut policy = Yardmaster::configure(catalog, "{}").unwrap();
    run(&mut policy, catalog, &window.all_resident().build())
}

fn batch(worker: u32, variant: u32, requests: &[u64]) -> Batch {
    Batch {
        worker,
        variant,
        stages: (0, 1),
        exit: Some(0),
        requests: requests.to_vec(),
    }
}

fn two_apps() -> Catalog {
    let catalog = with_app(
        CatalogBuilder::new(),
        "a",
        &[("a-fast", 0.5, 5_000), ("a-deep", 0.9, 40_000)],
    );
    with_app(catalog, "b", &[("b", 0.8, 10_000)])
        .worker("w")
        .build()
}

#[test]
fn time_that_nobody_else_needs_buys_accuracy() {
    let catalog = two_apps();
    let found = decide(&catalog, WindowBuilder::new(&catalog).request("a"));
    assert_eq!(found.batches, [batch(0, 1, &[1])]);
}

/// 40 ms for `a` would make `b` late, which has 20 ms; after `b` there is time for `a-deep`.
#[test]
fn a_request_that_can_still_be_in_time_goes_first() {
    let catalog = two_apps();
    let window = WindowBuilder::new(&catalog)
        .request("a")
        .request("b")
        .slack_us(20_000);
    assert_eq!(decide(&catalog, window).batches, [batch(0, 2, &[2])]);
}

/// `b` has 16 ms: `a`, with 9 ms, is in time only before it, by its fast variant.
#[test]
fn a_faster_variant_rescues_both() {
    let catalog = two_apps();
    let window = WindowBuilder::new(&catalog)
        .request("a")
        .slack_us(9_000)
        .request("b")
        .slack_us(16_000);
    assert_eq!(decide(&catalog, window).batches, [batch(0, 0, &[1])]);
}

/// On `slow` the request would take 50 ms, on `fast` 10 ms, 5 ms from now.
#[test]
fn a_slow_worker_waits_for_a_fast_one() {
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .variant("v", &[0.9, 0.9])
        .latency_on("f", 10_000, 0)
        .latency_on("s", 50_000, 0)
        .worker_of("fast", "f")
        .worker_of("slow", "s")
        .build();
    let window = WindowBuilder::new(&catalog).request("a");
    let busy = window.clone().busy(0, 0, 5_000);
    assert_eq!(decide(&catalog, busy).batches, []);
    let long = window.busy(0, 0, 60_000);
    assert_eq!(decide(&catalog, long).batches, [batch(1, 0, &[1])]);
}

#[test]
fn a_lost_request_waits_until_the_worker_is_free() {
    let catalog = two_apps();
    let window = WindowBuilder::new(&catalog)
        .request("a")
        .slack_us(-1_000)
        .request("b");
    assert_eq!(
        decide(&catalog, window.clone()).batches,
        [batch(0, 2, &[2])]
    );
    let alone = WindowBuilder::new(&catalog).request("a").slack_us(-1_000);
    assert_eq!(decide(&catalog, alone).batches, [batch(0, 0, &[1])]);
}

#[test]
fn a_lost_request_runs_on_the_worker_that_can_run_it() {
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .penalty(switchyard_sdk::Penalty::Step)
        .variant("a", &[0.9, 0.9])
        .latency_on("gpu", 10_000, 0)
        .worker_of("cpu", "cpu")
        .worker_of("gpu", "gpu")
        .build();
    let window = WindowBuilder::new(&catalog).request("a").slack_us(-1_000);
    assert_eq!(decide(&catalog, window).batches, [batch(1, 0, &[1])]);
}

/// Request 2 is answered sooner if it waits for the fast worker; the lost request waits next to it,
/// until half of the app's time has passed since its deadline.
#[test]
fn a_lost_request_does_not_wait_for_a_faster_worker_for_ever() {
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .penalty(switchyard_sdk::Penalty::Step)
        .slo_us(100_000)
        .variant("a", &[0.9, 0.9])
        .latency_on("fast", 10_000, 0)
        .latency_on("slow", 95_000, 0)
        .worker_of("fast", "fast")
        .worker_of("slow", "slow")
        .build();
    let lost = |late_us: i64| {
        WindowBuilder::new(&catalog)
            .now_us(1_000_000)
            .busy(0, 0, 5_000)
            .request("a")
            .slack_us(-late_us)
            .request("a")
            .slack_us(200_000)
    };
    assert_eq!(decide(&catalog, lost(40_000)).batches, []);
    let found = decide(&catalog, lost(60_000)).batches;
    assert_eq!(found, [batch(1, 0, &[1])]);
}

/// The evidence answers at 0.95, no variant does better: no worker's time is needed.
#[test]
fn evidence_that_is_better_than_every_variant_answers() {
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .sneakpeek(5, 0.95)
        .variant("v", &[0.9, 0.9])
        .latency(10_000, 0)
        .worker("w")
        .build();
    let window = WindowBuilder::new(&catalog).request("a").evidence(&[5, 0]);
    let found = decide(&catalog, window);
    assert_eq!((found.answers, found.batches), (vec![1], vec![]));
}
