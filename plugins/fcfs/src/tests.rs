use switchyard_sdk::Policy;
use switchyard_sdk::testing::{Batch, CatalogBuilder, WindowBuilder, run};

use super::*;

/// Two apps on two workers. `heart` has variants 0 (small) and 1 (large, more accurate),
/// `voice` has variant 2.
fn catalog() -> Catalog {
    CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .variant("small", &[0.8, 0.7])
        .max_batch(4)
        .latency(100, 10)
        .variant("large", &[0.9, 0.9])
        .max_batch(4)
        .latency(400, 40)
        .app("voice", &["yes", "no"])
        .variant("net", &[0.9, 0.9])
        .latency(100, 10)
        .worker("a")
        .worker("b")
        .build()
}

fn policy(catalog: &Catalog, json: &str) -> Fcfs {
    Fcfs::configure(catalog, json).unwrap()
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

#[test]
fn the_oldest_request_chooses_the_app_and_others_of_the_app_join() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .request("voice")
        .age_us(300)
        .request("heart")
        .age_us(200)
        .request("voice")
        .age_us(100)
        .build();
    let decisions = run(&mut policy(&catalog, "{}"), &catalog, &window);
    assert_eq!(decisions.batches, [batch(0, 2, &[1, 3]), batch(1, 1, &[2])]);
}

#[test]
fn a_batch_is_at_most_as_large_as_the_profile_covers() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .requests(6, "heart")
        .busy(0, 1, 500)
        .build();
    let decisions = run(&mut policy(&catalog, "{}"), &catalog, &window);
    assert_eq!(decisions.batches, [batch(1, 1, &[1, 2, 3, 4])]);
}

#[test]
fn settings_choose_the_variant() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog).request("heart").build();
    let mut chosen = policy(&catalog, r#"{"variants": {"heart": "small"}}"#);
    assert_eq!(
        run(&mut chosen, &catalog, &window).batches,
        [batch(0, 0, &[1])]
    );

    let error = Fcfs::configure(&catalog, r#"{"variants": {"heart": "net"}}"#).unwrap_err();
    assert_eq!(error, "settings: variants.heart: unknown variant net");
    let error = Fcfs::configure(&catalog, r#"{"variants": {"hart": "small"}}"#).unwrap_err();
    assert_eq!(error, "settings: variants.hart: unknown app");
}

#[test]
fn the_idle_worker_that_is_free_first_goes_first_and_busy_workers_get_nothing() {
    let catalog = catalog();
    let mut window = WindowBuilder::new(&catalog).request("heart").build();
    // A remote worker that may be sent a batch behind its running one.
    window.workers.busy_until[0] = window.now + 100_000;
    let decisions = run(&mut policy(&catalog, "{}"), &catalog, &window);
    assert_eq!(decisions.batches, [batch(1, 1, &[1])]);

    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .busy(0, 1, 500)
        .away(1)
        .build();
    let decisions = run(&mut policy(&catalog, "{}"), &catalog, &window);
    assert_eq!(decisions.batches, []);
}

#[test]
fn parked_requests_resume_on_their_worker() {
    let catalog = CatalogBuilder::new()
        .app("image", &["a", "b"])
        .variant("net", &[0.9, 0.9])
        .stages(3)
        .latency(100, 10)
        .worker("a")
        .build();
    let window = WindowBuilder::new(&catalog)
        .request("image")
        .age_us(900)
        .request("image")
        .age_us(500)
        .parked(0, 0, 1)
        .request("image")
        .age_us(400)
        .parked(0, 0, 2)
        .request("image")
        .age_us(300)
        .parked(0, 0, 1)
        .build();
    let decisions = run(&mut policy(&catalog, "{}"), &catalog, &window);
    let resumed = Batch {
        stages: (1, 3),
        ..batch(0, 0, &[2, 4])
    };
    assert_eq!(
        decisions.batches,
        [resumed],
        "only requests at the same stage as the oldest"
    );
}

#[test]
fn a_variant_that_does_not_fit_on_a_worker_runs_on_another() {
    let catalog = CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .variant("large", &[0.9, 0.9])
        .memory_bytes(2_000)
        .latency(400, 40)
        .worker("tiny")
        .worker_memory_bytes(1_000)
        .worker("big")
        .build();
    let window = WindowBuilder::new(&catalog).request("heart").build();
    let decisions = run(&mut policy(&catalog, "{}"), &catalog, &window);
    assert_eq!(decisions.batches, [batch(1, 0, &[1])]);
}
