//! The batches that idle workers run from their queues.

use super::*;

#[test]
fn the_action_is_that_of_queue_length_and_slack() {
    let catalog = catalog(1);
    let mut policy = policy(&catalog);
    let window = || WindowBuilder::new(&catalog);
    let one = |policy: &mut Ramsis, slack_us| {
        decide(
            policy,
            &catalog,
            window().request("image").slack_us(slack_us),
        )
    };
    assert_eq!(one(&mut policy, 100_000), [(0, 1, vec![1])]);
    // Rounded down to 50 ms.
    assert_eq!(one(&mut policy, 99_999), [(0, 0, vec![1])]);
    assert_eq!(
        one(&mut policy, -7),
        [(0, 0, vec![1])],
        "late requests are served"
    );
    // A slack beyond the table counts as its largest.
    assert_eq!(one(&mut policy, 900_000), [(0, 1, vec![1])]);
    let two = decide(&mut policy, &catalog, window().requests(2, "image"));
    assert_eq!(two, [(0, 1, vec![1, 2])]);
    let full = decide(&mut policy, &catalog, window().requests(5, "image"));
    assert_eq!(full, [(0, 0, vec![1, 2])]);
    assert!(decide(&mut policy, &catalog, window()).is_empty());
}

#[test]
fn a_queue_beyond_the_tables_is_served_whole_if_set() {
    // N is 2. Five requests: the full state's two of `small`, or all five; two are the table's own.
    let catalog = catalog(1);
    put("image", &set(1));
    let json = r#"{"tables": ["image"], "drain": "whole"}"#;
    let mut policy = configured(&catalog, json);
    let window = || WindowBuilder::new(&catalog);
    let full = decide(&mut policy, &catalog, window().requests(5, "image"));
    assert_eq!(full, [(0, 0, vec![1, 2, 3, 4, 5])]);
    let two = decide(&mut policy, &catalog, window().requests(2, "image"));
    assert_eq!(two, [(0, 1, vec![1, 2])]);
}

#[test]
fn the_lowest_covering_tables_are_used_and_an_overload_is_logged_once() {
    let catalog = catalog(1);
    let mut policy = policy(&catalog);
    let mut under = |load| {
        let window = WindowBuilder::new(&catalog).request("image");
        decide_under(&mut policy, &catalog, load, window)[0].1
    };
    assert_eq!(
        [under(0.0), under(100.0), under(100.1), under(200.0)],
        [1, 1, 0, 0]
    );
    assert!(warnings().is_empty());
    assert_eq!([under(201.0), under(400.0), under(9.0)], [0, 0, 1]);
    let [warning] = warnings().try_into().unwrap();
    assert_eq!(
        warning,
        "app image: the load of 201/s is beyond all tables, the highest is for 200/s; run \
         `switchyard prepare ramsis`"
    );
}

#[test]
fn the_setting_load_per_s_replaces_the_measured_load() {
    let catalog = catalog(1);
    put("image", &set(1));
    let mut policy = configured(&catalog, r#"{"tables": ["image"], "load_per_s": 150}"#);
    let window = WindowBuilder::new(&catalog).request("image");
    assert_eq!(decide(&mut policy, &catalog, window)[0].1, 0);
}

#[test]
fn a_queue_is_in_deadline_order_and_a_batch_may_be_a_part() {
    let catalog = catalog(1);
    let mut policy = policy(&catalog);
    let window = WindowBuilder::new(&catalog);
    let window = window.request("image").slack_us(300_000);
    let window = window.request("image").slack_us(150_000);
    // Two requests with time under the higher load: one alone with `large`.
    let decided = decide_under(&mut policy, &catalog, 150.0, window);
    assert_eq!(decided, [(0, 1, vec![2])]);
}

#[test]
fn requests_beyond_a_batch_stay_in_the_workers_queue() {
    let catalog = catalog(2);
    let mut policy = policy(&catalog);
    let window = || WindowBuilder::new(&catalog).requests(4, "image");
    // 1 and 3 belong to the first worker.
    let busy = window().busy(0, 1, 9_000).busy(1, 1, 9_000);
    assert!(decide(&mut policy, &catalog, busy).is_empty());
    let first = decide_under(&mut policy, &catalog, 150.0, window().busy(1, 1, 9_000));
    assert_eq!(first, [(0, 1, vec![1])]);
    // 1 is gone and the second worker is idle: 3 still waits for the first.
    let mut left = window().busy(0, 1, 9_000).build();
    remove(&mut left, 1);
    let second = batches(run(&mut policy, &catalog, &left));
    assert_eq!(second, [(1, 1, vec![2, 4])]);
}

#[test]
fn parked_requests_resume_first() {
    let catalog = app(CatalogBuilder::new(), "image")
        .variant("cut", &[0.9, 0.9])
        .stages(2)
        .latency(9, 9)
        .worker("w0")
        .build();
    let mut policy = policy(&catalog);
    let window = WindowBuilder::new(&catalog).request("image");
    let window = window.request("image").parked(0, 2, 1);
    let decided = decide(&mut policy, &catalog, window.clone());
    assert_eq!(decided, [(0, 2, vec![2])]);
    let without = WindowBuilder::new(&catalog).request("image");
    assert_eq!(decide(&mut policy, &catalog, without), [(0, 1, vec![1])]);
}

#[test]
fn without_tables_the_most_accurate_variant_in_time_serves() {
    let catalog = catalog(2);
    let mut policy = configured(&catalog, "{}");
    assert_eq!(
        warnings(),
        ["no tables for image: served greedily by the most accurate variant in time"]
    );
    let window = WindowBuilder::new(&catalog);
    let window = window.request("image").slack_us(89_000);
    let window = window.request("image").slack_us(61_000);
    // `large` takes 90 ms for both and 60 ms for one; `small` takes 30 ms for both.
    assert_eq!(decide(&mut policy, &catalog, window), [(0, 0, vec![2, 1])]);
    assert!(warnings().is_empty(), "logged once");
}

/// Removes a request from a window.
pub(super) fn remove(
    window: &mut switchyard_sdk::bindings::exports::switchyard::policy::scheduling::Window,
    id: u64,
) {
    let requests = window.requests.as_mut().unwrap();
    let at = requests.id.iter().position(|&other| other == id).unwrap();
    requests.id.remove(at);
    requests.app.remove(at);
    requests.arrival.remove(at);
    requests.deadline.remove(at);
    requests.priority.remove(at);
    requests.min_quality.remove(at);
}
