//! Cases computed by hand.

#![allow(clippy::unwrap_used)]

use switchyard_sdk::testing::{Batch, CatalogBuilder, Decisions, WindowBuilder, run};

use switchyard_sdk::host;

use super::*;
use crate::responses::{Measured, VariantResponses};

/// Two workers and one app with an SLO of 100 ms. Variant 0, `small`: 5 + 5 b ms; 8 take 45 ms, two
/// workers serve 355.6/s. Variant 1, `large`: 20 + 20 b ms; one takes 40 ms, two workers serve
/// 50/s. Variant 2, `huge`: 30 + 30 b ms.
fn builder() -> CatalogBuilder {
    CatalogBuilder::new()
        .app("a", &["x", "y"])
        .variant("small", &[0.7, 0.7])
        .latency(5_000, 5_000)
        .variant("large", &[0.9, 0.9])
        .latency(20_000, 20_000)
        .variant("huge", &[0.95, 0.95])
        .latency(30_000, 30_000)
        .worker("v")
        .worker("w")
}

fn decide(catalog: &Catalog, json: &str, window: WindowBuilder<'_>) -> Decisions {
    let mut policy = Selection::configure(catalog, json).unwrap();
    run(&mut policy, catalog, &window.build())
}

/// Variant and requests of the batches, worker by worker.
fn served(json: &str, waiting: usize) -> Vec<(u32, Vec<u64>)> {
    let catalog = builder().build();
    let window = WindowBuilder::new(&catalog).requests(waiting, "a");
    let batches = decide(&catalog, json, window).batches;
    batches
        .into_iter()
        .map(|b| (b.variant, b.requests))
        .collect()
}

#[test]
fn jellyfish_takes_the_most_accurate_model_that_sustains_the_load() {
    let at = |load: f64| served(&format!(r#"{{"headroom": 1.0, "load_per_s": {load}}}"#), 1);
    assert_eq!(at(50.0), [(1, vec![1])]);
    assert_eq!(at(50.1), [(0, vec![1])]);
    assert_eq!(
        at(1_000.0),
        [(0, vec![1])],
        "no model sustains it: the fastest"
    );
    // Headroom of 1.05 by default.
    assert_eq!(served(r#"{"load_per_s": 47}"#, 1), [(1, vec![1])]);
    assert_eq!(served(r#"{"load_per_s": 48}"#, 1), [(0, vec![1])]);
}

#[test]
fn idle_workers_take_batches_of_adapted_size() {
    // `large` takes 40 ms for one, 60 for two.
    assert_eq!(
        served(r#"{"load_per_s": 10}"#, 3),
        [(1, vec![1]), (1, vec![2])]
    );
    let eight: Vec<u64> = (1..=8).collect();
    let small = r#"{"load_per_s": 300}"#;
    assert_eq!(served(small, 9), [(0, eight.clone()), (0, vec![9])]);
    assert_eq!(served(small, 8), [(0, eight)]);
    assert!(served(small, 0).is_empty());
}

#[test]
fn by_default_the_load_is_that_of_the_last_half_second() {
    let catalog = builder().build();
    let mut window = WindowBuilder::new(&catalog).request("a").build();
    let mut policy = Selection::configure(&catalog, "{}").unwrap();
    window.arrival_rate = vec![40.0];
    assert_eq!(run(&mut policy, &catalog, &window).batches[0].variant, 1);
    window.arrival_rate = vec![60.0];
    assert_eq!(run(&mut policy, &catalog, &window).batches[0].variant, 0);
}

#[test]
fn a_worker_that_the_model_does_not_fit_on_takes_none() {
    let catalog = builder().worker_memory_bytes(10).build();
    let window = WindowBuilder::new(&catalog).requests(3, "a");
    let batches = decide(&catalog, r#"{"load_per_s": 20}"#, window).batches;
    let workers: Vec<u32> = batches.iter().map(|batch| batch.worker).collect();
    assert_eq!(workers, [0]);
}

#[test]
fn infaas_takes_the_fastest_model_that_is_accurate_enough() {
    let at = |accuracy: f64| {
        let json = format!(r#"{{"algorithm": "infaas", "accuracy": {accuracy}}}"#);
        served(&json, 1)[0].0
    };
    assert_eq!(
        [at(0.0), at(0.7), at(0.71), at(0.9), at(0.95)],
        [0, 0, 1, 1, 2]
    );
    assert_eq!(at(0.99), 2, "no model reaches it: the most accurate");
}

#[test]
fn greedy_takes_the_most_accurate_model_in_time() {
    let catalog = builder().build();
    let greedy = |waiting: usize, slack_us: i64| {
        let mut window = WindowBuilder::new(&catalog).busy(1, 0, 1_000);
        for _ in 0..waiting {
            window = window.request("a").slack_us(slack_us);
        }
        let batches = decide(&catalog, r#"{"algorithm": "greedy"}"#, window).batches;
        let Batch {
            variant, requests, ..
        } = batches[0].clone();
        (variant, requests.len())
    };
    assert_eq!(greedy(1, 60_000), (2, 1));
    assert_eq!(greedy(1, 59_999), (1, 1));
    assert_eq!(greedy(3, 80_000), (1, 3));
    assert_eq!(greedy(9, 44_000), (0, 7));
    assert_eq!(greedy(1, -5), (0, 1), "late: the fastest");
}

#[test]
fn the_oldest_request_chooses_among_apps_that_share_the_workers() {
    let catalog = builder()
        .app("b", &["x", "y"])
        .variant("only", &[0.8, 0.8])
        .latency(1_000, 1_000)
        .build();
    let window = WindowBuilder::new(&catalog)
        .request("a")
        .age_us(5)
        .request("b")
        .age_us(9)
        .request("b");
    let mut window = window.build();
    // Together 60/s: too much for `large`.
    window.arrival_rate = vec![20.0, 40.0];
    let mut policy = Selection::configure(&catalog, "{}").unwrap();
    let batches = run(&mut policy, &catalog, &window).batches;
    let served: Vec<_> = batches
        .into_iter()
        .map(|b| (b.variant, b.requests))
        .collect();
    assert_eq!(served, [(3, vec![2, 3]), (0, vec![1])]);
}

#[test]
fn parked_requests_resume_first() {
    let catalog = builder()
        .variant("cut", &[0.9, 0.9])
        .stages(2)
        .latency(9, 9)
        .build();
    let window = WindowBuilder::new(&catalog)
        .request("a")
        .request("a")
        .parked(1, 3, 1);
    let batches = decide(&catalog, "{}", window).batches;
    assert_eq!((batches[1].worker, batches[1].stages), (1, (1, 2)));
    assert_eq!(batches[0].requests, [1]);
}

fn measured() -> Responses {
    let variant = |name: &str, batch_max: u32, response_us: &[Option<u64>]| VariantResponses {
        variant: name.to_owned(),
        batch_max: (0..3).map(|load| batch_max + load).collect(),
        response_us: response_us.to_vec(),
    };
    Responses {
        format: 1,
        measured: vec![Measured {
            app: "a".to_owned(),
            kind: "cpu".to_owned(),
            workers: 2,
            slo_us: 100_000,
            percentile: 0.99,
            loads_rps: vec![10.0, 20.0, 40.0],
            variants: vec![
                variant("small", 6, &[Some(12_000), Some(20_000), None]),
                variant("large", 2, &[Some(60_000), Some(99_999), None]),
                variant("huge", 1, &[Some(99_999), Some(100_000), None]),
            ],
        }],
    }
}

fn switching(responses: &Responses, catalog: &Catalog) -> Result<Selection, String> {
    let json = serde_json::to_string(responses).unwrap();
    host::native::put_artifact("image/responses.json", json.into_bytes());
    let json = r#"{"algorithm": "model-switching", "responses": "image"}"#;
    Selection::configure(catalog, json)
}

#[test]
fn model_switching_takes_the_most_accurate_model_below_the_slo() {
    let catalog = builder().build();
    let mut policy = switching(&measured(), &catalog).unwrap();
    let mut at = |load| {
        let mut window = WindowBuilder::new(&catalog).requests(9, "a").build();
        window.arrival_rate = vec![load];
        let batch = run(&mut policy, &catalog, &window).batches[0].clone();
        (batch.variant, batch.requests.len())
    };
    assert_eq!(at(0.0), (2, 1));
    assert_eq!(at(10.0), (2, 1));
    // 100 ms is not below the SLO.
    assert_eq!(at(10.1), (1, 3));
    assert_eq!(at(20.0), (1, 3));
    assert_eq!(
        at(21.0),
        (0, 8),
        "no model is below the SLO: the fastest with its largest batch"
    );
    assert_eq!(at(999.0), (0, 8));
}

#[test]
fn responses_for_other_workers_slos_or_variants_are_refused() {
    let catalog = builder().build();
    let refused = |change: fn(&mut Measured)| {
        let mut responses = measured();
        change(&mut responses.measured[0]);
        switching(&responses, &catalog).unwrap_err()
    };
    let error = refused(|of| of.workers = 3);
    assert!(error.contains("no entry for app a on 2 workers"), "{error}");
    let error = refused(|of| of.slo_us = 90_000);
    assert!(
        error.contains("is 90000, but the SLO of app a is 100000"),
        "{error}"
    );
    let error = refused(|of| of.kind = "gpu".to_owned());
    assert!(
        error.contains("is gpu, but a worker has kind cpu"),
        "{error}"
    );
    let error = refused(|of| of.variants[1].variant = "medium".to_owned());
    assert!(error.contains("unknown variant medium of app a"), "{error}");
    let error = refused(|of| of.loads_rps.truncate(2));
    assert!(
        error.contains("measured[0].variants[0].response_us"),
        "{error}"
    );
    let missing = r#"{"algorithm": "model-switching", "responses": "none"}"#;
    let error = Selection::configure(&catalog, missing).unwrap_err();
    assert!(error.contains("no artifact none/responses.json"), "{error}");
    assert!(error.contains("switchyard prepare selection"), "{error}");
}

#[test]
fn settings_are_checked_by_name() {
    let refused = |json: &str| Selection::configure(&builder().build(), json).unwrap_err();
    assert!(refused(r#"{"headroom": 0}"#).starts_with("settings: headroom: "));
    assert!(refused(r#"{"accuracy": 80}"#).starts_with("settings: accuracy: "));
    assert!(refused(r#"{"load_per_s": -1}"#).starts_with("settings: load_per_s: "));
    assert!(refused(r#"{"algorithm": "magic"}"#).starts_with("settings: algorithm: "));
}
