//! One worker. `long` takes 100 ms, or four slices of 30, 30, 25 and 25 ms; `short` takes 10 ms of its 50.

use switchyard_sdk::testing::{Batch, CatalogBuilder, WindowBuilder, run};
use switchyard_sdk::{Catalog, Penalty, Policy};

use crate::Yardmaster;

fn test_bed() -> Catalog {
    let long = CatalogBuilder::new()
        .app("long", &["x"])
        .penalty(Penalty::Step)
        .slo_us(1_000_000)
        .variant("long", &[0.9])
        .max_batch(1)
        .stages(4)
        .latency_at(1, 100_000);
    let parts = [30_000, 30_000, 25_000, 25_000];
    let cut = (0u32..).zip(parts).fold(long, |long, (stage, part_us)| {
        long.stage_latency(stage, stage + 1, stage == 3, 1, part_us)
    });
    cut.app("short", &["x"])
        .penalty(Penalty::Step)
        .slo_us(50_000)
        .variant("short", &[0.9])
        .max_batch(1)
        .latency(10_000, 0)
        .worker("w")
        .build()
}

/// Variant, stages and requests of each batch.
fn decide(window: WindowBuilder<'_>, catalog: &Catalog) -> Vec<(u32, (u32, u32), Vec<u64>)> {
    let mut policy = Yardmaster::configure(catalog, "{}").unwrap();
    let found = run(&mut policy, catalog, &window.all_resident().build());
    let of = |batch: Batch| (batch.variant, batch.stages, batch.requests);
    found.batches.into_iter().map(of).collect()
}

/// 30 ms and the 10 of `short` are within its 50, 60 and 10 are not.
#[test]
fn a_batch_that_would_make_an_arrival_late_stops_in_time_for_it() {
    let catalog = test_bed();
    let window = WindowBuilder::new(&catalog).request("long");
    let alone = decide(window.clone(), &catalog);
    assert_eq!(alone, [(0, (0, 4), vec![1])]);
    let expected = decide(window.arrival_rate(1, 10.0), &catalog);
    assert_eq!(expected, [(0, (0, 1), vec![1])]);
}

/// The last two stages take 50 ms; `short` would be late after them.
#[test]
fn a_request_that_cannot_wait_runs_before_the_next_slice() {
    let catalog = test_bed();
    let window = WindowBuilder::new(&catalog).request("long").parked(0, 0, 2);
    let urgent = window.clone().request("short");
    assert_eq!(decide(urgent, &catalog), [(1, (0, 1), vec![2])]);
    assert_eq!(decide(window.clone(), &catalog), [(0, (2, 4), vec![1])]);
    let expected = decide(window.arrival_rate(1, 10.0), &catalog);
    assert_eq!(expected, [(0, (2, 3), vec![1])]);
}

/// Batches of one request were parked after the same stage.
#[test]
fn parked_requests_go_on_in_batches_of_at_most_the_largest() {
    let catalog = test_bed();
    let window = WindowBuilder::new(&catalog)
        .request("long")
        .parked(0, 0, 2)
        .request("long")
        .slack_us(500_000)
        .parked(0, 0, 2);
    assert_eq!(decide(window, &catalog), [(0, (2, 4), vec![2])]);
}

/// `long` has 55 ms left and needs 50, `short` has 70 ms left and needs 10.
#[test]
fn a_parked_request_that_cannot_wait_goes_on() {
    let catalog = test_bed();
    let window = WindowBuilder::new(&catalog)
        .request("long")
        .slack_us(55_000)
        .parked(0, 0, 2)
        .request("short")
        .slack_us(70_000);
    assert_eq!(decide(window, &catalog), [(0, (2, 4), vec![1])]);
}

/// Once half of its time has passed since the deadline it goes on at once.
#[test]
fn a_parked_request_does_not_wait_for_ever() {
    let catalog = test_bed();
    let late = |late_us: u64| {
        let window = WindowBuilder::new(&catalog).now_us(10_000_000);
        let window = window
            .request("long")
            .age_us(1_000_000 + late_us)
            .slack_us(-(late_us as i64))
            .parked(0, 0, 2);
        decide(window.request("short"), &catalog)
    };
    assert_eq!(late(400_000), [(1, (0, 1), vec![2])]);
    assert_eq!(late(600_000), [(0, (2, 4), vec![1])]);
}
