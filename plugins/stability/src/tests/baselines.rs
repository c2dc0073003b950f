//! The schedulers of sections VI-A and VI-H.

use super::*;

/// `slow` takes 20 ms, `quick` 10 ms.
fn two() -> Catalog {
    apps(&[("quick", 2, 10), ("slow", 4, 20)]).build()
}

fn policy(name: &str) -> String {
    format!(r#"{{"policy": "{name}"}}"#)
}

#[test]
fn all_final_and_all_early_serve_the_longest_queue() {
    let requests = [("slow", 49), ("quick", 45), ("quick", 1)];
    assert_eq!(
        served(&two(), &policy("all-final"), &requests),
        (FINAL, vec![2, 3])
    );
    assert_eq!(
        served(&two(), &policy("all-early"), &requests),
        (EARLY, vec![2, 3])
    );
}

#[test]
fn of_equal_queues_the_one_with_the_oldest_task_is_served() {
    let requests = [("quick", 20), ("slow", 25)];
    assert_eq!(
        served(&two(), &policy("all-final"), &requests),
        (FINAL, vec![2])
    );
}

#[test]
fn early_exit_lqf_and_edf_take_the_deepest_exit_in_time() {
    let requests = [("slow", 35), ("quick", 20), ("quick", 1)];
    // The longest queue: 20 + 10 is in time.
    assert_eq!(
        served(&two(), &policy("early-exit-lqf"), &requests),
        (FINAL, vec![2, 3])
    );
    // The least slack: 35 + 20 is late.
    assert_eq!(
        served(&two(), &policy("early-exit-edf"), &requests),
        (EARLY, vec![1])
    );
}

#[test]
fn edf_goes_by_slack_if_slos_differ() {
    let catalog = apps(&[("a", 2, 10)]);
    let catalog = with_app(catalog, "b", 2, 10).slo_us(200_000).build();
    // Slacks 140 and 30.
    let requests = [("b", 60), ("a", 20)];
    assert_eq!(
        served(&catalog, &policy("early-exit-edf"), &requests).1,
        [2]
    );
}

#[test]
fn all_final_deadline_aware_chooses_by_score_alone() {
    // As in `rounds`: after quick 0.741, after slow 0.819.
    let requests = [("slow", 25), ("quick", 20)];
    let json = policy("all-final-deadline-aware");
    assert_eq!(served(&two(), &json, &requests), (FINAL, vec![2]));
    assert_eq!(served(&two(), &json, &[("slow", 49)]), (FINAL, vec![1]));
}

#[test]
fn symphony_waits_until_the_oldest_task_must_start() {
    let catalog = two();
    let json = r#"{"policy": "symphony", "margin_us": 0}"#;
    // Slow must start at 50 - 10 - 20 = 20 ms from now, quick at 50 - 5 - 10 = 35.
    let window = waiting(&catalog, &[("slow", 10), ("quick", 5)]);
    let decisions = decide(&catalog, json, window);
    assert_eq!(decisions.batches, []);
    assert_eq!(decisions.wake_us, Some(1_000_000 + 20_000));
    // Then it starts, although its queue is shorter.
    let requests = [("slow", 30), ("quick", 25), ("quick", 2)];
    assert_eq!(served(&catalog, json, &requests), (FINAL, vec![1]));
    // Of two overdue queues the one that had to start first: -10 against 0.
    let requests = [("slow", 40), ("quick", 40)];
    assert_eq!(served(&catalog, json, &requests).1, [1]);
}

#[test]
fn symphony_starts_earlier_by_its_margin() {
    let catalog = two();
    let requests = [("slow", 10), ("quick", 5)];
    for (json, wake_us) in [
        (r#"{"policy": "symphony"}"#, 18_000),
        (r#"{"policy": "symphony", "margin_us": 5000}"#, 15_000),
    ] {
        let decisions = decide(&catalog, json, waiting(&catalog, &requests));
        assert_eq!(decisions.wake_us, Some(1_000_000 + wake_us), "{json}");
    }
    let json = r#"{"policy": "symphony", "margin_us": 21000}"#;
    assert_eq!(served(&catalog, json, &requests), (FINAL, vec![1]));
}

#[test]
fn symphony_starts_a_full_batch() {
    let json = r#"{"policy": "symphony", "batch_max": 3}"#;
    let requests = [("quick", 1), ("quick", 1), ("quick", 1), ("slow", 10)];
    assert_eq!(served(&two(), json, &requests), (FINAL, vec![1, 2, 3]));
}
