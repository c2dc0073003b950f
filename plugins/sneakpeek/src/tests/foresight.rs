//! The price of time (not in the paper).

use super::*;

/// 10 ms for 0.8, 40 ms for 0.9; both meet the deadlines.
fn catalog() -> Catalog {
    CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .variant("fast", &[0.8, 0.8])
        .max_batch(1)
        .latency(10_000, 0)
        .variant("slow", &[0.9, 0.9])
        .max_batch(1)
        .latency(40_000, 0)
        .worker("cpu")
        .build()
}

/// The variant of one request's batch at an arrival rate.
fn variant(json: &str, rate: f64) -> u32 {
    let catalog = catalog();
    let mut policy = SneakPeek::configure(&catalog, json).unwrap();
    let window = WindowBuilder::new(&catalog).all_resident().request("heart");
    let mut window = window.slack_us(200_000).build();
    window.arrival_rate = vec![rate];
    run(&mut policy, &catalog, &window).batches[0].variant
}

#[test]
fn only_foresight_saves_time_for_later_arrivals() {
    let foresight = r#"{"foresight": true}"#;
    // 20/s of 40 ms fill 0.8 of the worker: the slow model fits. 50/s do not: the price is 0.1 in
    // 30 ms, slow counts 0.9 - 0.1 * 40 / 30 = 0.767, fast 0.8 - 0.1 * 10 / 30 = 0.767, and the
    // earlier end decides.
    assert_eq!((variant(foresight, 20.0), variant(foresight, 50.0)), (1, 0));
    assert_eq!((variant("{}", 20.0), variant("{}", 50.0)), (1, 1));
}
