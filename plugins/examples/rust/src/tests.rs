//! Native tests: no host, no WebAssembly.

use switchyard_sdk::Policy;
use switchyard_sdk::testing::{Batch, CatalogBuilder, WindowBuilder, run};

use super::*;

/// App `heart` has variants 0 (large, accurate) and 1 (small); `voice` has variant 2 with three
/// stages. Variant 0 does not fit on worker 1.
fn catalog() -> Catalog {
    CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .variant("large", &[0.9, 0.9])
        .max_batch(4)
        .memory_bytes(8_000)
        .latency(20, 20)
        .variant("small", &[0.7, 0.7])
        .max_batch(4)
        .memory_bytes(1_000)
        .latency(8, 2)
        .app("voice", &["yes", "no"])
        .variant("net", &[0.8, 0.8])
        .stages(3)
        .max_batch(4)
        .memory_bytes(1_000)
        .latency(20, 10)
        .worker("big")
        .worker("tiny")
        .worker_memory_bytes(5_000)
        .build()
}

fn batches(window: &WindowBuilder) -> Vec<Batch> {
    let catalog = catalog();
    let mut policy = EarliestDeadline::configure(&catalog, "{}").unwrap();
    run(&mut policy, &catalog, &window.clone().build()).batches
}

fn batch(worker: u32, variant: u32, requests: &[u64]) -> Batch {
    Batch {
        worker,
        variant,
        stages: (0, if variant == 2 { 3 } else { 1 }),
        exit: Some(0),
        requests: requests.to_vec(),
    }
}

#[test]
fn the_most_urgent_request_chooses_the_app() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .slack_us(900)
        .request("voice")
        .slack_us(300)
        .request("heart")
        .slack_us(800);
    // Within the app, by deadline.
    assert_eq!(batches(&window), [batch(0, 2, &[2]), batch(1, 1, &[3, 1])]);
}

#[test]
fn the_batch_and_then_the_accuracy_are_as_large_as_the_deadline_allows() {
    let catalog = catalog();
    let one = WindowBuilder::new(&catalog)
        .request("heart")
        .slack_us(40)
        .away(1);
    assert_eq!(batches(&one), [batch(0, 0, &[1])]);
    // Only the small variant meets the deadline with two.
    let two = one.request("heart").slack_us(50);
    assert_eq!(batches(&two), [batch(0, 1, &[1, 2])]);
}

#[test]
fn a_missed_deadline_gets_the_fastest_variant() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .slack_us(5)
        .away(1);
    assert_eq!(batches(&window), [batch(0, 1, &[1])]);
}

#[test]
fn parked_requests_resume_on_their_worker() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .slack_us(20)
        .request("voice")
        .slack_us(900)
        .parked(0, 2, 1);
    let resumed = Batch {
        stages: (1, 3),
        ..batch(0, 2, &[2])
    };
    assert_eq!(batches(&window), [resumed, batch(1, 1, &[1])]);
}

#[test]
fn busy_workers_get_nothing() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .busy(0, 1, 500)
        .busy(1, 1, 500);
    assert_eq!(batches(&window), []);
}

#[test]
fn an_unknown_setting_is_refused() {
    let error = EarliestDeadline::configure(&catalog(), r#"{"batch": 2}"#).unwrap_err();
    assert!(error.contains("batch"), "{error}");
}
