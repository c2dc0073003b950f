//! Extensions of the paper: deadlines per request, several rounds, `protect`.

use super::*;

/// `slow` takes 20 ms, `quick` 10 ms.
fn two() -> Catalog {
    apps(&[("quick", 2, 10), ("slow", 4, 20)]).build()
}

#[test]
fn a_request_with_its_own_deadline_is_as_urgent_as_its_slack() {
    let catalog = two();
    let window = || waiting(&catalog, &[("slow", 20), ("quick", 0)]).slack_us(5_000);
    // A slack of 5 ms with an SLO of 50 is a wait of 45. After slow it is at 65, after quick slow
    // is at 22: exp(0.3) = 1.350 against exp(-0.56) = 0.571.
    let decisions = decide(&catalog, "{}", window());
    assert_eq!(decisions.batches[0].requests, [2]);
    assert_eq!(
        decisions.batches[0].exit,
        Some(EARLY),
        "the last exit is late"
    );
    // By the SLO its wait is 0: after slow 20, 0.549; after quick slow is at 30, 0.670.
    let by_slo = decide(&catalog, r#"{"deadlines": "slo"}"#, window());
    assert_eq!(by_slo.batches[0].requests, [1]);
}

#[test]
fn the_most_urgent_request_of_a_queue_goes_first() {
    let catalog = two();
    let window = || waiting(&catalog, &[("slow", 20), ("slow", 0)]).slack_us(25_000);
    let first = |json| decide(&catalog, json, window()).batches[0].requests.clone();
    assert_eq!(first(r#"{"batch_max": 1}"#), [2]);
    assert_eq!(first(r#"{"batch_max": 1, "deadlines": "slo"}"#), [1]);
}

#[test]
fn a_queue_is_ordered_by_any_deadlines() {
    let catalog = two();
    let mut window = WindowBuilder::new(&catalog);
    // Equal deadlines by arrival; beyond twelve days also by arrival.
    for slack_us in [
        9_000,
        i64::MAX,
        7_000,
        -3_000,
        7_000,
        90_000_000_000_000,
        8_000,
    ] {
        window = window.request("quick").slack_us(slack_us);
    }
    let decisions = decide(&catalog, "{}", window);
    assert_eq!(decisions.batches[0].requests, [4, 3, 5, 7, 1, 2, 6]);
}

#[test]
fn two_rounds_find_a_better_queue_than_one() {
    let catalog = apps(&[("a", 5, 10), ("b", 5, 30), ("c", 5, 30)]).build();
    let requests = [("b", 10), ("b", 10), ("a", 5), ("c", 0), ("c", 0)];
    // One round: after a 2 exp(-0.6) + 2 exp(-0.8) = 1.996, after b exp(-0.3) + 2 exp(-0.4) =
    // 2.081, after c exp(-0.3) + 2 exp(-0.2) = 2.378.
    let one = r#"{"policy": "all-final-deadline-aware"}"#;
    assert_eq!(served(&catalog, one, &requests).1, [3]);
    // Two rounds: after a and b, c is at 40, 1.996 + 2 exp(-0.2) = 3.634; after b and c, a is at
    // 65, 2.081 + exp(0.3) = 3.431; after c and b 2.378 + exp(0.3) = 3.728.
    let two = r#"{"policy": "all-final-deadline-aware", "lookahead": 2}"#;
    assert_eq!(served(&catalog, two, &requests).1, [1, 2]);
}

#[test]
fn protect_saves_a_short_queue_that_the_score_gives_up() {
    let catalog = apps(&[("long", 5, 20), ("short", 10, 15)]).build();
    let mut requests = vec![("short", 35)];
    requests.extend([("long", 20); 10]);
    // After long, short is at 55: exp(0.1) = 1.105. After short, ten are at 35: 10 exp(-0.3) =
    // 7.408.
    assert_eq!(
        served(&catalog, "{}", &requests),
        (FINAL, (2..=11).collect())
    );
    // But short is then late from its early exit: 35 + 20 + 10 = 65. After short, which ends at 50,
    // long is in time from its early exit: 20 + 15 + 5 = 40.
    assert_eq!(
        served(&catalog, r#"{"protect": true}"#, &requests),
        (FINAL, vec![1])
    );
    // If short is late already, both orders have one late task.
    requests[0] = ("short", 60);
    assert_eq!(served(&catalog, r#"{"protect": true}"#, &requests).1[0], 2);
}

#[test]
fn protect_counts_other_workers() {
    let builder = apps(&[("long", 5, 20), ("short", 10, 15)]);
    let catalog = builder.worker("gpu-2").build();
    let mut requests = vec![("short", 35)];
    requests.extend([("long", 20); 10]);
    // The other worker is free in 5 ms and answers short at 35 + 5 + 10 = 50.
    let window = waiting(&catalog, &requests).busy(1, 0, 5_000);
    let batches = decide(&catalog, r#"{"protect": true}"#, window).batches;
    assert_eq!(batches[0].requests[0], 2);
    let window = waiting(&catalog, &requests).busy(1, 0, 6_000);
    let batches = decide(&catalog, r#"{"protect": true}"#, window).batches;
    assert_eq!(batches[0].requests, [1]);
}
