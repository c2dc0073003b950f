//! Schedules at the end of windows, batches of adjacent requests, merged label groups.

use super::*;

/// One app with variant 0 (10 ms, 0.8) and variant 1 (40 ms, 0.9), for every batch; a late answer has
/// utility 0.
fn one_app() -> Catalog {
    CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .penalty(Penalty::Step)
        .sneakpeek(5, 0.1)
        .variant("fast", &[0.8, 0.8])
        .latency(10_000, 0)
        .variant("slow", &[0.9, 0.9])
        .latency(40_000, 0)
        .worker("cpu")
        .build()
}

/// Variant and requests of each batch, and when to wake.
fn decide(
    policy: &mut SneakPeek,
    catalog: &Catalog,
    window: WindowBuilder,
) -> (Vec<(u32, Vec<u64>)>, Option<u64>) {
    let decisions = run(policy, catalog, &window.all_resident().build());
    let batches = decisions.batches.into_iter();
    let batches = batches.map(|batch| (batch.variant, batch.requests));
    (batches.collect(), decisions.wake_us)
}

#[test]
fn a_window_is_scheduled_whole_at_its_end() {
    let catalog = &one_app();
    let json = r#"{"schedule_at": "window-end", "window_ms": 10}"#;
    let mut policy = SneakPeek::configure(catalog, json).unwrap();
    // Arrived at 1,003 ms: the window ends at 1,010 ms, although the worker is idle.
    let early = WindowBuilder::new(catalog).now_us(1_004_000);
    let early = early.request("heart").age_us(1_000);
    assert_eq!(
        decide(&mut policy, catalog, early),
        (vec![], Some(1_010_000))
    );
    // Then all of it is committed, although the worker is busy for 5 ms, which is beyond the lookahead.
    let end = WindowBuilder::new(catalog).now_us(1_010_000);
    let end = end.requests(2, "heart").age_us(7_000).busy(0, 0, 5_000);
    assert_eq!(
        decide(&mut policy, catalog, end),
        (vec![(1, vec![1, 2])], Some(1_020_000))
    );
}

#[test]
fn lost_requests_of_a_window_run_last() {
    let catalog = &one_app();
    let json = r#"{"schedule_at": "window-end", "window_ms": 10}"#;
    let mut policy = SneakPeek::configure(catalog, json).unwrap();
    // Late by more than its deadline: utility 0 with every model.
    let window = WindowBuilder::new(catalog).now_us(1_010_000);
    let window = window.request("heart").age_us(900_000);
    let window = window.request("heart").age_us(7_000);
    assert_eq!(
        decide(&mut policy, catalog, window).0,
        [(1, vec![2]), (0, vec![1])]
    );
}

#[test]
fn adjacent_requests_with_one_model_are_a_batch() {
    // Due in 100 ms: slow ends at 40 and 80, and would end at 120, so the third is fast.
    let catalog = &one_app();
    let decided = |more: &str| {
        let json = format!(r#"{{"algorithm": "lo-edf"{more}}}"#);
        let mut policy = SneakPeek::configure(catalog, &json).unwrap();
        let window = WindowBuilder::new(catalog).requests(3, "heart");
        decide(&mut policy, catalog, window).0
    };
    let whole = r#", "lookahead_ms": 1000"#;
    let singles = [(1, vec![1]), (1, vec![2]), (0, vec![3])];
    assert_eq!(decided(whole), singles);
    let joined = r#", "lookahead_ms": 1000, "opportunistic": true"#;
    assert_eq!(decided(joined), [(1, vec![1, 2]), (0, vec![3])]);
    // Only batches that start now: the first choice, and those that join it.
    assert_eq!(decided(""), [(1, vec![1])]);
    let joined = r#", "opportunistic": true"#;
    assert_eq!(decided(joined), [(1, vec![1, 2])]);
}

#[test]
fn label_groups_are_merged_if_that_is_worth_more() {
    // Due in 15 ms: apart, one group ends at 10 ms and the other at 20 ms; together both at 10 ms.
    let catalog = &one_app();
    let decided = |more: &str| {
        let json = format!(r#"{{"short_circuit": false{more}}}"#);
        let mut policy = SneakPeek::configure(catalog, &json).unwrap();
        let window = WindowBuilder::new(catalog);
        let window = window.request("heart").slack_us(15_000).evidence(&[5, 0]);
        let window = window.request("heart").slack_us(15_000).evidence(&[0, 5]);
        decide(&mut policy, catalog, window).0
    };
    assert_eq!(decided("").len(), 1);
    assert_eq!(decided("")[0].1.len(), 1);
    assert_eq!(decided(r#", "merge": true"#), [(0, vec![1, 2])]);
    // Also beyond tau, where the split groups are only sorted.
    let sorted = r#", "merge": true, "tau": 1"#;
    assert_eq!(decided(sorted), [(0, vec![1, 2])]);
}
