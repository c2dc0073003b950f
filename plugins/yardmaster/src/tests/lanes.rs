use switchyard_sdk::testing::{Batch, WindowBuilder, run};
use switchyard_sdk::window::Index;
use switchyard_sdk::{Catalog, Policy, Window};

use super::*;
use crate::Yardmaster;
use crate::classes::of_catalog;
use crate::lanes::Lanes;
use crate::menu::at_rows;

/// 10 ms per row, at most four requests in a batch.
fn texts() -> Catalog {
    with_app(CatalogBuilder::new(), "texts", &[("v", 0.9, 10_000)])
        .worker("w")
        .build()
}

fn decide(catalog: &Catalog, window: WindowBuilder<'_>) -> Vec<Vec<u64>> {
    let mut policy = Yardmaster::configure(catalog, "{}").unwrap();
    let found = run(&mut policy, catalog, &window.all_resident().build());
    let requests = |batch: Batch| batch.requests;
    found.batches.into_iter().map(requests).collect()
}

/// Request 1 is due first, and takes 80 ms of its 60. Request 2 takes 10 ms.
#[test]
fn a_long_request_that_cannot_be_in_time_lets_a_short_one_go_first() {
    let catalog = texts();
    let window = WindowBuilder::new(&catalog)
        .request("texts")
        .cost(8.0)
        .slack_us(60_000)
        .request("texts")
        .slack_us(90_000);
    assert_eq!(decide(&catalog, window), [[2]]);
}

/// Request 1 came first and takes 70 ms: that would make request 2 late, which has 60 ms. After it there is time.
#[test]
fn a_long_request_waits_for_a_short_one_that_it_would_make_late() {
    let catalog = texts();
    let window = WindowBuilder::new(&catalog)
        .now_us(1_000_000)
        .request("texts")
        .cost(7.0)
        .age_us(5_000)
        .slack_us(90_000)
        .request("texts")
        .slack_us(60_000);
    assert_eq!(decide(&catalog, window), [[2]]);
}

/// With 80 ms it is in time: it is not lost among the short ones.
#[test]
fn a_long_request_alone_runs() {
    let catalog = texts();
    let window = WindowBuilder::new(&catalog).request("texts").cost(8.0);
    assert_eq!(decide(&catalog, window), [[1]]);
}

/// Request 1 came first and takes 80 ms, request 2 takes 10 ms. With a minute left they keep their order; with 100 ms, an
/// SLO, the short one goes first, as both are in time so.
#[test]
fn a_long_request_is_overtaken_only_to_be_in_time() {
    let catalog = texts();
    let window = |slack_us| {
        WindowBuilder::new(&catalog)
            .now_us(10_000_000)
            .request("texts")
            .cost(8.0)
            .age_us(5_000)
            .slack_us(slack_us)
            .request("texts")
            .slack_us(slack_us)
    };
    assert_eq!(decide(&catalog, window(60_000_000)), [[1]]);
    assert_eq!(decide(&catalog, window(100_000)), [[2]]);
}

#[test]
fn requests_of_other_costs_have_a_lane_with_their_latencies() {
    let catalog = texts();
    let (mut menus, _) = of_catalog(&catalog).unwrap();
    let mut lanes = Lanes::new(&menus);
    let mut window = WindowBuilder::new(&catalog);
    for cost in [1.0, 1.0, 3.0, 5.0] {
        window = window.request("texts").cost(cost);
    }
    let window = window.build();
    let mut index = Index::default();
    index.fill(&catalog, &window).unwrap();
    let view = Window::new(&catalog, &window, &index);
    let mut learn = || {
        lanes.learn(&view, &mut menus);
        let each = [0, 1].map(|lane| (lanes.app(lane), lanes.unit(lane), lanes.share(lane)));
        let latencies = menus
            .iter()
            .map(|menu| menu.choices[0].costs[0].latencies_us[1]);
        (each, latencies.collect::<Vec<f64>>())
    };
    let wanted = ([(0, 1.0, 0.5), (0, 4.0, 0.5)], vec![20_000.0, 80_000.0]);
    assert_eq!(learn(), wanted);
    assert_eq!(learn(), wanted, "none is counted twice");
}

/// The rules of the host's `Profile::latency_of`.
#[test]
fn latencies_between_and_beyond_batches() {
    let latencies_us = [10.0, 18.0, 24.0];
    let each = [0.5, 1.0, 1.5, 3.0, 5.0].map(|rows| at_rows(&latencies_us, rows));
    assert_eq!(each, [10.0, 10.0, 14.0, 24.0, 36.0]);
    assert_eq!(at_rows(&[10.0], 3.0), 30.0);
    assert_eq!(at_rows(&[], 1.0), f64::INFINITY);
}
