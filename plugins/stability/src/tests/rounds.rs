//! Which queue is served (eq. 7), round after round.

use super::*;

/// `slow` takes 20 ms, `quick` 10.
fn two() -> CatalogBuilder {
    apps(&[("quick", 2, 10), ("slow", 4, 20)])
}

#[test]
fn serves_whom_the_others_can_wait_for() {
    let catalog = two().build();
    // After quick, slow has waited 35: exp(-0.3) = 0.741. After slow, quick has waited 40:
    // exp(-0.2) = 0.819. So quick, though slow has waited longer.
    assert_eq!(
        served(&catalog, "{}", &[("slow", 25), ("quick", 20)]),
        (FINAL, vec![2])
    );
    // Two more in slow: 3 tasks at 35 leave 2.222, and quick still 0.819.
    let requests = [("slow", 25), ("slow", 25), ("slow", 25), ("quick", 20)];
    assert_eq!(served(&catalog, "{}", &requests), (FINAL, vec![1, 2, 3]));
}

#[test]
fn what_does_not_fit_the_batch_stays_and_counts() {
    let catalog = two().build();
    // With one at a time slow leaves its second at 30 and quick at 40: exp(-0.4) + exp(-0.2) =
    // 1.489. Quick leaves slow at 35 and 20: exp(-0.3) + exp(-0.6) = 1.290.
    let requests = [("slow", 25), ("slow", 10), ("quick", 20)];
    assert_eq!(served(&catalog, r#"{"batch_max": 1}"#, &requests).1, [3]);
    // With room for both of slow only quick is left: 0.819.
    assert_eq!(served(&catalog, "{}", &requests).1, [1, 2]);
}

#[test]
fn the_clip_keeps_the_lost_from_crowding_out_the_rest() {
    let catalog = apps(&[("lost", 10, 11), ("many", 10, 11)]).build();
    // Lost is at 90 + 11 = 101 after many: exp(1.02) = 2.77, clipped to e. Many is at 29 + 10
    // after lost, which takes its early exit: three times exp(-0.22) = 2.408.
    let requests = [("lost", 90), ("many", 29), ("many", 29), ("many", 29)];
    assert_eq!(served(&catalog, "{}", &requests), (EARLY, vec![1]));
    assert_eq!(
        served(&catalog, r#"{"clip": 1.5}"#, &requests),
        (FINAL, vec![2, 3, 4]),
        "1.5 is below 2.408"
    );
}

#[test]
fn each_app_is_measured_by_its_own_slo() {
    let catalog = apps(&[("a", 2, 10)]);
    let catalog = with_app(catalog, "b", 2, 10).slo_us(200_000).build();
    // After a, b is at 70: exp(70 / 200 - 1) = 0.522. After b, a is at 30: exp(-0.4) = 0.670.
    assert_eq!(served(&catalog, "{}", &[("b", 60), ("a", 20)]).1, [2]);
}

#[test]
fn rounds_see_what_earlier_ones_took() {
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
fn nobody_waits_longer_than_until_some_worker_is_free() {
    let catalog = two().worker("gpu-2").build();
    let requests = [("slow", 25), ("quick", 20)];
    // Nobody has to wait: slow leaves quick at 20, exp(-0.6) = 0.549; quick leaves slow at 25,
    // exp(-0.5) = 0.607.
    let batches = decide(&catalog, "{}", waiting(&catalog, &requests)).batches;
    let order: Vec<_> = batches
        .iter()
        .map(|b| (b.worker, b.requests.clone()))
        .collect();
    assert_eq!(order, [(0, vec![1]), (1, vec![2])]);
    // The other is free in 5 ms: 0.607 against 0.670.
    let window = waiting(&catalog, &requests).busy(1, 0, 5_000);
    assert_eq!(decide(&catalog, "{}", window).batches[0].requests, [1]);
    // In 15 ms: quick leaves slow at 35, 0.741; slow leaves quick at 35, 0.741. In 18 it is 35
    // and 38.
    let window = waiting(&catalog, &requests).busy(1, 0, 18_000);
    assert_eq!(decide(&catalog, "{}", window).batches[0].requests, [2]);
}

#[test]
fn nothing_is_decided_while_all_are_busy_or_away() {
    let catalog = two().build();
    let window = waiting(&catalog, &[("slow", 25)]).busy(0, 0, 5_000);
    let decisions = decide(&catalog, "{}", window);
    assert_eq!((decisions.batches, decisions.wake_us), (vec![], None));
    let window = waiting(&catalog, &[("slow", 25)]).away(0);
    assert_eq!(decide(&catalog, "{}", window).batches, []);
}

#[test]
fn what_is_half_run_goes_on_first() {
    let catalog = two().worker("gpu-2").build();
    let window = waiting(&catalog, &[("slow", 25), ("quick", 20)]).parked(0, 0, 1);
    let batches = decide(&catalog, "{}", window).batches;
    let order: Vec<_> = batches
        .iter()
        .map(|b| (b.worker, b.stages, b.requests.clone()))
        .collect();
    assert_eq!(order, [(0, (1, 2), vec![2]), (1, (0, 2), vec![1])]);
}
