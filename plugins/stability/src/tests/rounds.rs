//! The served queue (eq. 7), round after round.

use super::*;

/// `slow` takes 20 ms, `quick` 10 ms.
fn two() -> CatalogBuilder {
    apps(&[("quick", 2, 10), ("slow", 4, 20)])
}

#[test]
fn the_queue_that_leaves_the_lowest_score_is_served() {
    let catalog = two().build();
    // After quick, slow has waited 35: exp(-0.3) = 0.741. After slow, quick has waited 40:
    // exp(-0.2) = 0.819. So quick, although slow has waited longer.
    assert_eq!(
        served(&catalog, "{}", &[("slow", 25), ("quick", 20)]),
        (FINAL, vec![2])
    );
    // Two more in slow: after quick 3 tasks at 35, 2.222; after slow still 0.819.
    let requests = [("slow", 25), ("slow", 25), ("slow", 25), ("quick", 20)];
    assert_eq!(served(&catalog, "{}", &requests), (FINAL, vec![1, 2, 3]));
}

#[test]
fn tasks_beyond_the_batch_stay_and_count() {
    let catalog = two().build();
    // With batches of one: after slow its second task is at 30 and quick at 40, exp(-0.4) +
    // exp(-0.2) = 1.489; after quick slow is at 35 and 20, exp(-0.3) + exp(-0.6) = 1.290.
    let requests = [("slow", 25), ("slow", 10), ("quick", 20)];
    assert_eq!(served(&catalog, r#"{"batch_max": 1}"#, &requests).1, [3]);
    // With both of slow in one batch only quick is left: 0.819.
    assert_eq!(served(&catalog, "{}", &requests).1, [1, 2]);
}

#[test]
fn the_clip_bounds_the_weight_of_lost_tasks() {
    let catalog = apps(&[("lost", 10, 11), ("many", 10, 11)]).build();
    // After many, lost is at 90 + 11 = 101: exp(1.02) = 2.77, clipped to e. After the early exit of
    // lost, many is at 29 + 10: three times exp(-0.22) = 2.408.
    let requests = [("lost", 90), ("many", 29), ("many", 29), ("many", 29)];
    assert_eq!(served(&catalog, "{}", &requests), (EARLY, vec![1]));
    assert_eq!(
        served(&catalog, r#"{"clip": 1.5}"#, &requests),
        (FINAL, vec![2, 3, 4]),
        "1.5 is below 2.408"
    );
}

#[test]
fn each_app_has_its_own_slo() {
    let catalog = apps(&[("a", 2, 10)]);
    let catalog = with_app(catalog, "b", 2, 10).slo_us(200_000).build();
    // After a, b is at 70: exp(70 / 200 - 1) = 0.522. After b, a is at 30: exp(-0.4) = 0.670.
    assert_eq!(served(&catalog, "{}", &[("b", 60), ("a", 20)]).1, [2]);
}

#[test]
fn rounds_see_the_queues_that_earlier_rounds_left() {
    let catalog = two().worker("gpu-2").build();
    let twelve = waiting(&catalog, &[("slow", 1); 12]);
    let sizes: Vec<_> = decide(&catalog, "{}", twelve)
        .batches
        .iter()
        .map(|batch| (batch.worker, batch.requests.len()))
        .collect();
    assert_eq!(sizes, [(0, 10), (1, 2)]);
}

#[test]
fn tasks_wait_until_some_worker_is_free() {
    let catalog = two().worker("gpu-2").build();
    let requests = [("slow", 25), ("quick", 20)];
    // Both workers are free: after slow, quick is at 20, exp(-0.6) = 0.549; after quick, slow is at
    // 25, exp(-0.5) = 0.607.
    let batches = decide(&catalog, "{}", waiting(&catalog, &requests)).batches;
    let order: Vec<_> = batches
        .iter()
        .map(|b| (b.worker, b.requests.clone()))
        .collect();
    assert_eq!(order, [(0, vec![1]), (1, vec![2])]);
    // The other worker is free in 5 ms: 0.607 against 0.670.
    let window = waiting(&catalog, &requests).busy(1, 0, 5_000);
    assert_eq!(decide(&catalog, "{}", window).batches[0].requests, [1]);
    // Free in 15 ms: after quick, slow is at 35, 0.741; after slow, quick is at 35, 0.741. Free in
    // 18: 35 and 38.
    let window = waiting(&catalog, &requests).busy(1, 0, 18_000);
    assert_eq!(decide(&catalog, "{}", window).batches[0].requests, [2]);
}

#[test]
fn nothing_is_decided_while_all_workers_are_busy_or_down() {
    let catalog = two().build();
    let window = waiting(&catalog, &[("slow", 25)]).busy(0, 0, 5_000);
    let decisions = decide(&catalog, "{}", window);
    assert_eq!((decisions.batches, decisions.wake_us), (vec![], None));
    let window = waiting(&catalog, &[("slow", 25)]).away(0);
    assert_eq!(decide(&catalog, "{}", window).batches, []);
}

#[test]
fn parked_requests_resume_first() {
    let catalog = two().worker("gpu-2").build();
    let window = waiting(&catalog, &[("slow", 25), ("quick", 20)]).parked(0, 0, 1);
    let batches = decide(&catalog, "{}", window).batches;
    let order: Vec<_> = batches
        .iter()
        .map(|b| (b.worker, b.stages, b.requests.clone()))
        .collect();
    assert_eq!(order, [(0, (1, 2), vec![2]), (1, (0, 2), vec![1])]);
}
