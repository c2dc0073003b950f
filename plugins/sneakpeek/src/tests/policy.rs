//! The whole policy, on windows computed by hand.

use super::*;
use switchyard_sdk::catalog::Capabilities;

/// One worker and one app with variant 0 (fast: 10 + 1 ms per request, accuracy 0.8) and variant 1
/// (slow: 40 + 2 ms per request, accuracy 0.9).
fn one_app() -> CatalogBuilder {
    CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .variant("fast", &[0.8, 0.8])
        .latency(10_000, 1_000)
        .variant("slow", &[0.9, 0.9])
        .latency(40_000, 2_000)
        .worker("cpu")
}

fn decide(catalog: &Catalog, json: &str, window: WindowBuilder) -> Decisions {
    let mut policy = SneakPeek::configure(catalog, json).unwrap();
    run(&mut policy, catalog, &window.build())
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
fn takes_the_better_model_while_deadlines_allow() {
    let catalog = one_app().build();
    // Slow takes 44 ms for two, so both deadlines of 100 ms are met: 0.9 each.
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .requests(2, "heart");
    assert_eq!(
        decide(&catalog, "{}", window).batches,
        [batch(0, 1, &[1, 2])]
    );
    // With 30 ms slow (42 ms) is late: x = 12 / 30 = 0.4, (0.4 / 0.6)^-3 = 3.375,
    // 0.9 * (1 - 1 / 4.375) = 0.694. Fast (11 ms) is in time: 0.8.
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .slack_us(30_000);
    assert_eq!(decide(&catalog, "{}", window).batches, [batch(0, 0, &[1])]);
    // With 36 ms: x = 1 / 6, (1 / 5)^-3 = 125, 0.9 * (1 - 1 / 126) = 0.893: slow.
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .slack_us(36_000);
    assert_eq!(decide(&catalog, "{}", window).batches, [batch(0, 1, &[1])]);
}

#[test]
fn short_circuits_when_deadlines_are_tight() {
    // Step penalty, deadline 5 ms after the arrival: fast takes 11 ms and has utility 0, the
    // SneakPeek model 0.6 * (1 - 0) = 0.6.
    let app = |accuracy| {
        CatalogBuilder::new()
            .app("heart", &["n", "a"])
            .penalty(Penalty::Step)
            .sneakpeek(5, accuracy)
            .variant("fast", &[0.8, 0.8])
            .latency(10_000, 1_000)
            .worker("cpu")
            .build()
    };
    let catalog = app(0.6);
    let tight = |catalog| {
        let window = WindowBuilder::new(catalog).all_resident().request("heart");
        window.slack_us(5_000).evidence(&[5, 0])
    };
    let decisions = decide(&catalog, "{}", tight(&catalog));
    assert_eq!((decisions.answers, decisions.batches), (vec![1], vec![]));

    // With 20 ms fast is in time: 0.8 beats 0.6.
    let decisions = decide(&catalog, "{}", tight(&catalog).slack_us(20_000));
    assert_eq!((decisions.answers, decisions.batches.len()), (vec![], 1));

    // A SneakPeek model of 0.85 beats 0.8 at any deadline.
    let catalog = app(0.85);
    let decisions = decide(&catalog, "{}", tight(&catalog).slack_us(20_000));
    assert_eq!(decisions.answers, [1]);

    // Never with short_circuit off, nor without evidence.
    let off = r#"{"short_circuit": false}"#;
    assert_eq!(
        decide(&catalog, off, tight(&catalog)).answers,
        [] as [u64; 0]
    );
    let unseen = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .slack_us(5_000);
    assert_eq!(decide(&catalog, "{}", unseen).answers, [] as [u64; 0]);
}

#[test]
fn workers_without_exits_answer_at_the_last_one() {
    // Early 10 ms, final 20 ms. With 15 ms left only the early exit is in time.
    let all = Capabilities::all();
    let exits = |can: [Capabilities; 2], slack_us: i64, away: Option<usize>| {
        let catalog = CatalogBuilder::new()
            .app("image", &["x", "y"])
            .penalty(Penalty::Step)
            .variant("net", &[0.9, 0.9])
            .stages(2)
            .early_exit("early", 1, &[0.5, 0.5])
            .latency(20_000, 0)
            .worker("w0")
            .can(can[0])
            .worker("w1")
            .can(can[1])
            .build();
        let window = WindowBuilder::new(&catalog).all_resident().request("image");
        let window = window.slack_us(slack_us);
        let window = away.into_iter().fold(window, WindowBuilder::away);
        let batches = decide(&catalog, "{}", window).batches;
        (batches[0].worker, batches[0].exit.unwrap())
    };
    let last_only = all - Capabilities::EXITS;
    assert_eq!(exits([last_only, all], 15_000, None), (1, 0));
    assert_eq!(exits([all, last_only], 15_000, None), (0, 0));
    assert_eq!(exits([last_only, all], 15_000, Some(1)), (0, 1));
    assert_eq!(exits([last_only, all], 25_000, None), (0, 1));
}

#[test]
fn accuracy_comes_from_the_evidence() {
    // Variant 0 is good at class n, variant 1 at class a. With Jeffreys' prior:
    // y = (5, 0): theta = (5.5, 0.5) / 6; 0: 0.9167 * 0.95 + 0.0833 * 0.5 = 0.9125,
    // 1: 0.9167 * 0.6 + 0.0833 * 0.99 = 0.6325. With y = (0, 5) variant 1 is better.
    let catalog = CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .frequencies(&[0.9, 0.1])
        .variant("normal", &[0.95, 0.5])
        .latency(1_000, 100)
        .variant("ectopic", &[0.6, 0.99])
        .latency(1_000, 100)
        .worker("cpu")
        .build();
    let variant = |json: &str, evidence: &[u32]| {
        let window = WindowBuilder::new(&catalog).all_resident().request("heart");
        decide(&catalog, json, window.evidence(evidence)).batches[0].variant
    };
    assert_eq!(variant("{}", &[5, 0]), 0);
    assert_eq!(variant("{}", &[0, 5]), 1);
    // Profiled: 0.9 * 0.95 + 0.1 * 0.5 = 0.905 against 0.9 * 0.6 + 0.1 * 0.99 = 0.639.
    assert_eq!(variant(r#"{"data_aware": false}"#, &[0, 5]), 0);
}

#[test]
fn groups_are_split_by_likely_label() {
    let catalog = CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .variant("normal", &[0.95, 0.5])
        .latency(1_000, 100)
        .variant("ectopic", &[0.6, 0.99])
        .latency(1_000, 100)
        .worker("cpu")
        .build();
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .evidence(&[5, 0])
        .request("heart")
        .evidence(&[0, 5])
        .request("heart")
        .evidence(&[4, 1]);
    // A lookahead that commits the whole schedule.
    let all = r#"{"lookahead_ms": 100}"#;
    let mut batches = decide(&catalog, all, window.clone()).batches;
    batches.sort_by_key(|batch| batch.variant);
    assert_eq!(batches, [batch(0, 0, &[1, 3]), batch(0, 1, &[2])]);

    // Unsplit, one model serves all. Accuracies of normal 0.9125 (y = 5, 0), 0.5375 (0, 5)
    // and 0.8375 (4, 1); of ectopic 0.6325, 0.9575 and 0.6975. With a fourth request (5, 0)
    // normal's 3.2 beats ectopic's 2.92. Inside the group eq. 12 orders by variance, since
    // the deadlines are equal: 0.0441 (0, 5), 0.0196 (5, 0), 0.0049 (4, 1).
    let whole = r#"{"lookahead_ms": 100, "label_split": false}"#;
    let window = window.request("heart").evidence(&[5, 0]);
    assert_eq!(
        decide(&catalog, whole, window).batches,
        [batch(0, 0, &[2, 1, 4, 3])]
    );
}

#[test]
fn min_accuracy_holds_if_some_model_reaches_it() {
    let catalog = one_app().build();
    // Only fast is in time with 12 ms, but the client asks for 0.85.
    let window = |least| {
        let window = WindowBuilder::new(&catalog).all_resident().request("heart");
        window.slack_us(12_000).min_quality(least)
    };
    assert_eq!(
        decide(&catalog, "{}", window(0.0)).batches,
        [batch(0, 0, &[1])]
    );
    assert_eq!(
        decide(&catalog, "{}", window(0.85)).batches,
        [batch(0, 1, &[1])]
    );
    // No model reaches 0.95: all are candidates.
    assert_eq!(
        decide(&catalog, "{}", window(0.95)).batches,
        [batch(0, 0, &[1])]
    );
}

#[test]
fn every_idle_worker_gets_a_batch() {
    let catalog = one_app().worker("second").worker("third").build();
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .requests(5, "heart");
    let decisions = decide(&catalog, "{}", window);
    let mut workers: Vec<_> = decisions.batches.iter().map(|batch| batch.worker).collect();
    workers.sort_unstable();
    assert_eq!(workers, [0, 1, 2]);
    assert_eq!(decisions.dispatched().len(), 5);
}

#[test]
fn requests_that_cannot_start_soon_stay_pending() {
    let catalog = one_app().build();
    // Three batches of 8 are due; one starts now, the others would wait.
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .requests(24, "heart");
    let decisions = decide(&catalog, "{}", window);
    assert_eq!(decisions.batches.len(), 1);
    assert!(
        decisions.wake_us.is_none(),
        "the next window opens when the worker is idle"
    );

    // Busy for 20 ms: no batch is committed; the policy asks for a window 1 ms before the end.
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .busy(0, 0, 20_000);
    let decisions = decide(&catalog, "{}", window);
    assert_eq!(decisions.batches, []);
    assert_eq!(decisions.wake_us, Some(1_019_000));

    // Busy for 0.5 ms: the next batch is queued.
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .busy(0, 0, 500);
    assert_eq!(decide(&catalog, "{}", window).batches.len(), 1);
}

#[test]
fn evidence_answers_while_all_workers_are_busy() {
    let catalog = CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .penalty(Penalty::Step)
        .sneakpeek(5, 0.6)
        .variant("fast", &[0.8, 0.8])
        .latency(10_000, 1_000)
        .worker("cpu")
        .build();
    let mut policy = SneakPeek::configure(&catalog, "{}").unwrap();
    // The worker is free in 200 ms; request 1 is due in 50, request 2 in 500.
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .busy(0, 0, 200_000)
        .request("heart")
        .slack_us(50_000)
        .evidence(&[5, 0])
        .request("heart")
        .slack_us(500_000)
        .evidence(&[0, 5])
        .build();
    let decisions = run(&mut policy, &catalog, &window);
    assert_eq!((decisions.answers, decisions.batches), (vec![1], vec![]));
    assert_eq!(
        decisions.wake_us,
        Some(1_005_000),
        "the next schedule is due after 5 ms"
    );
    // Until then no schedule is made.
    assert_eq!(run(&mut policy, &catalog, &window).answers, [] as [u64; 0]);
}

#[test]
fn lost_requests_wait_for_an_idle_worker_but_not_for_ever() {
    let catalog = one_app().build();
    // Sigmoid: utility 0 from twice the deadline on. Request 1 was due 900 ms ago.
    let late_by = |late_us: i64| {
        WindowBuilder::new(&catalog)
            .all_resident()
            .request("heart")
            .age_us(950_000)
            .slack_us(-late_us)
            .request("heart")
    };
    // The live request runs alone: a larger batch would be slower.
    assert_eq!(
        decide(&catalog, "{}", late_by(900_000)).batches,
        [batch(0, 1, &[2])]
    );
    // After `lost_wait_ms` the lost request goes first, once.
    let mut policy = SneakPeek::configure(&catalog, r#"{"lost_wait_ms": 800}"#).unwrap();
    let window = late_by(900_000).build();
    assert_eq!(
        run(&mut policy, &catalog, &window).batches,
        [batch(0, 0, &[1])]
    );
    assert_eq!(
        run(&mut policy, &catalog, &window).batches,
        [batch(0, 1, &[2])]
    );
    // On an idle worker it runs at once.
    let alone = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .age_us(950_000)
        .slack_us(-900_000);
    assert_eq!(decide(&catalog, "{}", alone).batches, [batch(0, 0, &[1])]);
}

#[test]
fn parked_requests_resume_first() {
    let catalog = CatalogBuilder::new()
        .app("image", &["a", "b"])
        .variant("net", &[0.9, 0.9])
        .stages(2)
        .latency(10_000, 1_000)
        .worker("cpu")
        .build();
    let window = WindowBuilder::new(&catalog)
        .request("image")
        .age_us(10)
        .request("image")
        .parked(0, 0, 1);
    let resumed = Batch {
        stages: (1, 2),
        ..batch(0, 0, &[2])
    };
    assert_eq!(decide(&catalog, "{}", window).batches, [resumed]);
}

#[test]
fn exits_are_candidate_models() {
    let catalog = CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .penalty(Penalty::Step)
        .variant("resnet", &[0.9, 0.9])
        .stages(2)
        .early_exit("first", 1, &[0.7, 0.7])
        .latency(40_000, 0)
        .worker("cpu")
        .build();
    let window = WindowBuilder::new(&catalog)
        .all_resident()
        .request("heart")
        .slack_us(30_000);
    let decisions = decide(&catalog, "{}", window.clone());
    assert_eq!(
        (decisions.batches[0].exit, decisions.batches[0].stages),
        (Some(0), (0, 1))
    );
    let decisions = decide(&catalog, r#"{"exits": false}"#, window);
    assert_eq!(decisions.batches[0].exit, Some(1));
}

#[test]
fn an_app_without_classes_is_served_by_profiled_quality() {
    use switchyard_sdk::catalog::Task;
    // As `one_app`, but the app embeds: no recall, no prior.
    let catalog = CatalogBuilder::new()
        .task_app("embed", Task::Embed)
        .quality("fast", Some(0.8))
        .latency(10_000, 1_000)
        .quality("slow", Some(0.9))
        .latency(40_000, 2_000)
        .worker("cpu")
        .build();
    let decided = |slack_us: i64| {
        let window = WindowBuilder::new(&catalog).all_resident();
        let window = window.request("embed").slack_us(slack_us);
        decide(&catalog, "{}", window).batches
    };
    // The decisions of `takes_the_better_model_while_deadlines_allow`.
    assert_eq!(decided(100_000), [batch(0, 1, &[1])]);
    assert_eq!(decided(30_000), [batch(0, 0, &[1])]);
    let said = switchyard_sdk::host::native::take_log();
    assert!(
        said.iter()
            .any(|(_, line)| line.starts_with("app embed: no classes"))
    );
}

#[test]
fn a_worker_that_holds_the_model_goes_before_one_that_loads_it() {
    let catalog = CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .variant("fast", &[0.8, 0.8])
        .latency(10_000, 0)
        .load_us(30_000)
        .worker("w0")
        .worker("w1")
        .worker("w2")
        .build();
    let window = |holder| {
        let window = WindowBuilder::new(&catalog).resident(holder, 0);
        window.request("heart").slack_us(50_000)
    };
    for holder in [0, 1, 2] {
        let batches = decide(&catalog, "{}", window(holder)).batches;
        assert_eq!(batches[0].worker, holder);
    }
    // A load is shorter than the wait for the holder.
    let busy = window(2).busy(2, 0, 200_000);
    assert_eq!(decide(&catalog, "{}", busy).batches[0].worker, 0);
}
