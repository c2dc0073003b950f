//! The observation and decision of a slot.

use switchyard_sdk::bindings::exports::switchyard::policy::scheduling as raw;
use switchyard_sdk::window::PlacedState::{Lane, Running};

use super::*;

#[test]
fn a_slot_routes_by_the_networks_shares() {
    let catalog = catalog();
    install(&three_to_one());
    let mut policy = policy(&catalog, "{}");
    let at = |now_us| WindowBuilder::new(&catalog).now_us(now_us);
    let first = run(&mut policy, &catalog, &at(1_000_000).build());
    assert_eq!(lanes(&first), [(0, HEAVY, 0.75), (1, LIGHT, 0.25)]);
    let lane = &first.routes[0].lanes[0];
    assert_eq!((lane.min_batch, lane.max_batch, lane.capacity), (1, 1, 2));
    assert_eq!(first.wake_us, Some(2_000_000));
    let between = run(&mut policy, &catalog, &at(1_500_000).build());
    assert_eq!(
        (between.routes.len(), between.wake_us),
        (0, Some(2_000_000))
    );
    let next = run(&mut policy, &catalog, &at(2_000_000).build());
    assert_eq!(lanes(&next).len(), 2);
}

/// Inputs per instance: 4 counts, elapsed time, 4 ages.
#[test]
fn the_requests_of_each_instance_are_observed() {
    let catalog = catalog();
    // Two requests in heavy (input 2); its elapsed time (4); its oldest age (5); the second oldest
    // age of light (9 + 6). All for the share of heavy.
    let weights = [
        (2, 0, 1.0),
        (4, 0, 10.0),
        (5, 0, 100.0),
        (9 + 6, 0, 1_000.0),
    ];
    let network = network(meta(Kind::Paper, &[]), &weights, &[0.0, 0.0]);
    install(&network);
    let mut policy = policy(&catalog, "{}");
    let mut window = WindowBuilder::new(&catalog)
        .busy(0, HEAVY, 30_000)
        .placed(0, HEAVY, 1, Running, 20_000)
        .placed(0, HEAVY, 0, Lane, 5_000)
        .placed(1, LIGHT, 2, Running, 9_000)
        .placed(1, LIGHT, 0, Lane, 3_000)
        .build();
    window.workers.running_since[0] = window.now - 10_000;
    let decisions = run(&mut policy, &catalog, &window);
    // 1 + 10 * 10 / 40 + 100 * 0.02 + 1000 * 0.003 = 8.5
    let expected = 1.0 / (1.0 + libm::exp(-8.5));
    let share = decisions.routes[0].lanes[0].weight;
    assert!((share - expected).abs() < 1e-6, "{share}, {expected}");
}

#[test]
fn arrivals_of_a_slot_are_counted_over_all_its_windows() {
    let catalog = catalog();
    // Extended: 10 inputs per instance, then the arrivals of the last slot.
    let network = network(meta(Kind::Extended, &[]), &[(20, 0, 1.0)], &[0.0, 0.0]);
    install(&network);
    let mut policy = policy(&catalog, "{}");
    let ended = |now_us, count| {
        let mut window = WindowBuilder::new(&catalog).now_us(now_us).build();
        window.completions = Some(raw::Completions {
            id: vec![1; count],
            app: vec![0; count],
            outcome: vec![raw::Outcome::InTime; count],
            variant: vec![u32::MAX; count],
            exit: vec![u32::MAX; count],
            latency: vec![1; count],
        });
        window
    };
    run(&mut policy, &catalog, &ended(1_000_000, 0));
    run(&mut policy, &catalog, &ended(1_500_000, 4));
    let decisions = run(&mut policy, &catalog, &ended(2_000_000, 5));
    let log = libm::log(1.0 + 9.0) / libm::log(181.0);
    let share = decisions.routes[0].lanes[0].weight;
    assert!((share - 1.0 / (1.0 + libm::exp(-log))).abs() < 1e-6);
}

#[test]
fn weights_that_observe_the_phase_get_it() {
    let catalog = catalog();
    // Full: 9 inputs per instance, then one per phase.
    let weights = [(18, 0, 5.0), (19, 1, 5.0)];
    let network = network(meta(Kind::Full, &[]), &weights, &[0.0, 0.0]);
    install(&network);
    let share = |per_s| {
        let mut policy = policy(&catalog, "{}");
        let window = WindowBuilder::new(&catalog).arrival_rate(0, per_s);
        lanes(&run(&mut policy, &catalog, &window.build()))[0].2
    };
    assert!(share(180.0) > 0.99, "the first phase");
    assert!(share(10.0) < 0.01, "the second phase");
    let error = PpoRouter::configure(&catalog, r#"{"rates": [3]}"#).unwrap_err();
    assert_eq!(
        error,
        "settings: rates: must be 2 numbers for default/policy.safetensors"
    );
}

#[test]
fn batch_bounds_are_per_model() {
    let catalog = catalog();
    let mut biases = vec![0.0; 2 + 2 * 6];
    // (3, 5) is the fifth pair, (1, 3) the second.
    (biases[2 + 4], biases[2 + 6 + 1]) = (1.0, 1.0);
    install(&network(meta(Kind::Paper, &[1, 3, 5]), &[], &biases));
    let mut policy = policy(&catalog, "{}");
    let decisions = run(&mut policy, &catalog, &WindowBuilder::new(&catalog).build());
    let batches: Vec<_> = decisions.routes[0]
        .lanes
        .iter()
        .map(|lane| (lane.min_batch, lane.max_batch, lane.capacity))
        .collect();
    // The capacity is 3, but at least the smallest batch fits.
    assert_eq!(batches, [(3, 5, 3), (1, 3, 1)]);
}

#[test]
fn the_share_of_a_lost_worker_goes_to_the_others() {
    let catalog = catalog();
    install(&three_to_one());
    let mut policy = policy(&catalog, "{}");
    run(&mut policy, &catalog, &WindowBuilder::new(&catalog).build());
    let one = WindowBuilder::new(&catalog)
        .now_us(1_100_000)
        .away(0)
        .requests(2, "image");
    let one = run(&mut policy, &catalog, &one.build());
    assert_eq!(lanes(&one), [(1, LIGHT, 1.0)]);
    assert_eq!(one.dispatched(), [1, 2], "the requests of the lost worker");
    let none = WindowBuilder::new(&catalog)
        .now_us(1_200_000)
        .away(0)
        .away(1);
    assert!(lanes(&run(&mut policy, &catalog, &none.build())).is_empty());
}
