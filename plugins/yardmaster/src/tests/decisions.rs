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

/// Now on `gpu` and in 8 ms on `dsp`, googlenet and resnet50 end after 28.6 and 44.8 ms; both on `dsp` after
/// 26.9 and 63.7 ms, which waits longer in all. The next vgg16 has a second, and the next squeezenet goes first.
#[test]
fn a_worker_is_not_kept_free_for_an_arrival_that_can_wait() {
    let models = [
        ("vgg16", 1_001_000, 264_500, 100_100),
        ("googlenet", 189_000, 28_600, 18_900),
        ("resnet50", 368_000, 58_400, 36_800),
        ("squeezenet", 129_000, 16_900, 12_900),
    ];
    let catalog = models.iter().fold(
        CatalogBuilder::new(),
        |catalog, &(name, slo_us, gpu_us, dsp_us)| {
            let app = catalog.app(name, &["x"]).slo_us(slo_us);
            app.penalty(switchyard_sdk::Penalty::Step)
                .variant(name, &[1.0])
                .max_batch(1)
                .latency_on("gpu", gpu_us, 0)
                .latency_on("dsp", dsp_us, 0)
        },
    );
    let catalog = catalog
        .worker_of("gpu", "gpu")
        .worker_of("dsp", "dsp")
        .build();
    let window = WindowBuilder::new(&catalog)
        .busy(1, 0, 8_000)
        .request("resnet50")
        .request("googlenet");
    // The host divides the arrivals of the first 10 ms by 500.
    let rates = [2.0, 11.0, 6.0, 16.0].map(|per_s| per_s / 50.0);
    let rates = rates.into_iter().enumerate();
    let window = rates.fold(window, |window, (app, per_s)| {
        window.arrival_rate(app, per_s)
    });
    assert_eq!(decide(&catalog, window).batches, [batch(0, 1, &[2])]);
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

/// 6 ms would do for `a-fast` by its profile; the worker is 1.5 times slower. Nothing else wakes the policy.
#[test]
fn a_request_that_a_slow_machine_has_made_late_is_lost() {
    let catalog = two_apps();
    let window = WindowBuilder::new(&catalog)
        .slowdown(0, 1.5)
        .request("a")
        .slack_us(6_000);
    assert_eq!(decide(&catalog, window).batches, [batch(0, 0, &[1])]);
}

/// Only `a-deep` reaches the least quality, and its 40 ms are too long.
#[test]
fn a_request_whose_least_quality_takes_too_long_is_lost() {
    let catalog = two_apps();
    let window = WindowBuilder::new(&catalog)
        .request("a")
        .min_quality(0.8)
        .slack_us(20_000);
    assert_eq!(decide(&catalog, window).batches, [batch(0, 1, &[1])]);
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

/// Evidence answers right at 0.95 of all classes, at 0.6 of the class that this request seems to be.
#[test]
fn an_answer_from_evidence_is_worth_its_recall_on_the_requests_classes() {
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .sneakpeek(5, 0.95)
        .sneakpeek_recall(&[0.6, 1.0])
        .variant("v", &[0.9, 0.9])
        .latency(10_000, 0)
        .worker("w")
        .build();
    let window = WindowBuilder::new(&catalog).request("a").evidence(&[5, 0]);
    let found = decide(&catalog, window);
    assert_eq!(
        (found.answers, found.batches),
        (vec![], vec![batch(0, 0, &[1])])
    );
}

/// `v` is right at one class, `w` at the other. A request without evidence is expected to be like those before.
#[test]
fn requests_without_evidence_are_expected_to_be_like_those_with_it() {
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .variant("v", &[0.9, 0.1])
        .latency(10_000, 0)
        .variant("w", &[0.2, 0.9])
        .latency(10_000, 0)
        .worker("w")
        .build();
    let mut policy = Yardmaster::configure(&catalog, "{}").unwrap();
    let mut decide = |window: WindowBuilder<'_>| {
        let found = run(&mut policy, &catalog, &window.all_resident().build());
        found.batches[0].variant
    };
    let without = || WindowBuilder::new(&catalog).request("a");
    assert_eq!(decide(without()), 1);
    let mut seen = WindowBuilder::new(&catalog);
    for _ in 0..4 {
        seen = seen.request("a").evidence(&[5, 0]);
    }
    assert_eq!(decide(seen), 0);
    assert_eq!(decide(without()), 0);
}
