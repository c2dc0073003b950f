//! Batch and exit (eq. 5 and 6), and the ladder of exits.

use super::*;
use crate::exits::ExitLadders;
use crate::settings::StabilitySettings;
use switchyard_sdk::catalog::Capabilities;
use switchyard_sdk::{AppId, WorkerId};

#[test]
fn the_deepest_exit_in_time_for_the_oldest_task() {
    let catalog = apps(&[("a", 5, 20)]).build();
    // 30 + 20 = 50 is in time.
    assert_eq!(
        served(&catalog, "{}", &[("a", 30), ("a", 2)]),
        (FINAL, vec![1, 2])
    );
    // 31 + 20 is late, although the other task is in time.
    assert_eq!(
        served(&catalog, "{}", &[("a", 31), ("a", 2)]),
        (EARLY, vec![1, 2])
    );
    // No exit in time: the shallowest.
    assert_eq!(served(&catalog, "{}", &[("a", 49)]), (EARLY, vec![1]));
}

#[test]
fn the_batch_has_all_waiting_tasks_up_to_the_largest_batch() {
    let catalog = apps(&[("a", 5, 20)]).build();
    let twelve = [("a", 1); 12];
    let (_, requests) = served(&catalog, "{}", &twelve);
    assert_eq!(requests, (1..=10).collect::<Vec<_>>());
    let (_, requests) = served(&catalog, r#"{"batch_max": 1}"#, &twelve);
    assert_eq!(requests, [1]);
    // The profile ends at 10.
    let (_, requests) = served(&catalog, r#"{"batch_max": 99}"#, &twelve);
    assert_eq!(requests.len(), 10);
}

#[test]
fn a_larger_and_slower_batch_takes_a_shallower_exit() {
    // 20 ms for one task, 2 ms for each further task.
    let catalog = CatalogBuilder::new()
        .app("a", &["x", "y"])
        .slo_us(50_000)
        .variant("a", &[0.9, 0.9])
        .stages(2)
        .early_exit("early", 1, &[0.5, 0.5])
        .latency(18_000, 2_000)
        .worker("gpu")
        .build();
    // One task 28 + 20 = 48, two 28 + 22 = 50, three 28 + 24 = 52.
    assert_eq!(served(&catalog, "{}", &[("a", 28)]).0, FINAL);
    assert_eq!(served(&catalog, "{}", &[("a", 28), ("a", 0)]).0, FINAL);
    assert_eq!(
        served(&catalog, "{}", &[("a", 28), ("a", 0), ("a", 0)]).0,
        EARLY
    );
}

#[test]
fn the_setting_exits_limits_the_exits() {
    let catalog = apps(&[("a", 5, 20)]).build();
    assert_eq!(
        served(&catalog, r#"{"exits": []}"#, &[("a", 49)]).0,
        FINAL,
        "the last exit is always used"
    );
    assert_eq!(
        served(&catalog, r#"{"exits": ["early"]}"#, &[("a", 49)]).0,
        EARLY
    );
    let error = Stability::configure(&catalog, r#"{"exits": ["layer1"]}"#).unwrap_err();
    assert_eq!(error, "settings: exits: no variant has an exit layer1");
}

#[test]
fn exits_of_several_variants_make_one_ladder() {
    let variant = |builder: CatalogBuilder, name, accuracy, base_us| {
        let builder = builder.variant(name, &[accuracy, accuracy]);
        builder.latency(base_us, 0)
    };
    let builder = CatalogBuilder::new().app("a", &["x", "y"]);
    let builder = variant(builder, "large", 0.9, 40_000);
    // No faster than the more accurate `small`: dropped.
    let builder = variant(builder, "poor", 0.7, 10_000);
    let builder = variant(builder, "small", 0.8, 10_000);
    let builder = builder.variant("huge", &[0.99, 0.99]).memory_bytes(2_000);
    let catalog = builder
        .latency(50_000, 0)
        .worker("tiny")
        .worker_memory_bytes(1_000_000)
        .build();
    let ladders = ExitLadders::of_catalog(&catalog, &StabilitySettings::default()).unwrap();
    assert_eq!(
        ladders.of(WorkerId(0), AppId(0)).rungs(),
        [(2, 0), (0, 0), (3, 0)]
    );
}

#[test]
fn a_worker_gets_only_variants_that_fit() {
    let builder = CatalogBuilder::new().app("a", &["x", "y"]);
    let builder = builder.variant("small", &[0.8, 0.8]).latency(10_000, 0);
    let builder = builder.variant("large", &[0.9, 0.9]).latency(40_000, 0);
    let catalog = builder
        .memory_bytes(2_000_000)
        .worker("tiny")
        .worker_memory_bytes(1_000_000)
        .worker("big")
        .build();
    let decisions = decide(
        &catalog,
        r#"{"batch_max": 1}"#,
        waiting(&catalog, &[("a", 1), ("a", 0)]),
    );
    let variants: Vec<_> = decisions
        .batches
        .iter()
        .map(|b| (b.worker, b.variant))
        .collect();
    assert_eq!(variants, [(0, 0), (1, 1)]);
}

#[test]
fn workers_without_exits_answer_at_the_last_one() {
    let catalog = apps(&[("a", 5, 20)])
        .worker("remote")
        .can(Capabilities::all() - Capabilities::EXITS)
        .build();
    // 40 + 20 = 60 is late, 40 + 5 = 45 is in time.
    let window = waiting(&catalog, &[("a", 40), ("a", 40)]);
    let decisions = decide(&catalog, r#"{"batch_max": 1}"#, window);
    let batches = decisions.batches.iter();
    let exits: Vec<_> = batches.map(|b| (b.worker, b.exit)).collect();
    assert_eq!(exits, [(0, Some(EARLY)), (1, Some(FINAL))]);
}

#[test]
fn the_load_time_of_a_variant_that_is_not_resident_counts() {
    let catalog = apps(&[("a", 5, 20)]);
    let catalog = with_app(catalog, "b", 5, 20).load_us(1_000).build();
    let window = |app| waiting(&catalog, &[(app, 30)]);
    // 30 + 20 = 50; with the load 51.
    let exit = |window| decide(&catalog, "{}", window).batches[0].exit;
    assert_eq!(exit(window("b")), Some(EARLY));
    assert_eq!(exit(window("b").all_resident()), Some(FINAL));
}

#[test]
fn min_accuracy_holds_for_the_whole_batch() {
    let catalog = apps(&[("a", 5, 20)]).build();
    let asks = |accuracy| {
        let window = waiting(&catalog, &[("a", 45), ("a", 1)]).min_quality(accuracy);
        decide(&catalog, "{}", window).batches[0].exit
    };
    assert_eq!(asks(0.5), Some(EARLY));
    assert_eq!(asks(0.6), Some(FINAL), "only the last exit reaches 0.6");
    assert_eq!(asks(0.95), Some(EARLY), "no exit reaches 0.95");
}
