//! What an idle worker runs of its queue.

use super::*;

#[test]
fn queue_length_and_slack_are_looked_up() {
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
        "late is better than never"
    );
    // More time than any table knows counts as the most that they know.
    assert_eq!(one(&mut policy, 900_000), [(0, 1, vec![1])]);
    let two = decide(&mut policy, &catalog, window().requests(2, "image"));
    assert_eq!(two, [(0, 1, vec![1, 2])]);
    let full = decide(&mut policy, &catalog, window().requests(5, "image"));
    assert_eq!(full, [(0, 0, vec![1, 2])]);
    assert!(decide(&mut policy, &catalog, window()).is_empty());
}

#[test]
fn the_lowest_tables_that_cover_the_load_serve_else_the_highest_and_the_log_says_so_once() {
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
        "app image: 201 requests per second are beyond all tables; those for 200 serve"
    );
}

#[test]
fn a_known_load_goes_before_what_was_seen() {
    let catalog = catalog(1);
    put("image", &set(1));
    let mut policy = configured(&catalog, r#"{"tables": ["image"], "load_per_s": 150}"#);
    let window = WindowBuilder::new(&catalog).request("image");
    assert_eq!(decide(&mut policy, &catalog, window)[0].1, 0);
}

#[test]
fn a_queue_is_in_deadline_order_and_a_batch_may_be_part_of_it() {
    let catalog = catalog(1);
    let mut policy = policy(&catalog);
    let window = WindowBuilder::new(&catalog);
    let window = window.request("image").slack_us(300_000);
    let window = window.request("image").slack_us(150_000);
    // Two that have time under the higher load: one alone with `large`.
    let decided = decide_under(&mut policy, &catalog, 150.0, window);
    assert_eq!(decided, [(0, 1, vec![2])]);
}

#[test]
fn what_a_batch_left_over_stays_in_its_workers_queue() {
    let catalog = catalog(2);
    let mut policy = policy(&catalog);
    let window = || WindowBuilder::new(&catalog).requests(4, "image");
    // 1 and 3 are the first worker's.
    let busy = window().busy(0, 1, 9_000).busy(1, 1, 9_000);
    assert!(decide(&mut policy, &catalog, busy).is_empty());
    let first = decide_under(&mut policy, &catalog, 150.0, window().busy(1, 1, 9_000));
    assert_eq!(first, [(0, 1, vec![1])]);
    // 1 is gone and the second worker is idle: 3 waits on.
    let mut left = window().busy(0, 1, 9_000).build();
    remove(&mut left, 1);
    let second = batches(run(&mut policy, &catalog, &left));
    assert_eq!(second, [(1, 1, vec![2, 4])]);
}

#[test]
fn what_was_half_run_goes_on_first() {
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
        ["no tables for image: the most accurate variant in time serves"]
    );
    let window = WindowBuilder::new(&catalog);
    let window = window.request("image").slack_us(89_000);
    let window = window.request("image").slack_us(61_000);
    // Together `large` would take 90 ms, and 60 ms alone; `small` takes 30 ms for both.
    assert_eq!(decide(&mut policy, &catalog, window), [(0, 0, vec![2, 1])]);
    assert!(warnings().is_empty(), "once is enough");
}

/// Takes a request out of a window.
pub(super) fn remove(
    window: &mut switchyard_sdk::bindings::exports::switchyard::policy::scheduling::Window,
    id: u64,
) {
    let requests = &mut window.requests;
    let at = requests.id.iter().position(|&other| other == id).unwrap();
    requests.id.remove(at);
    requests.app.remove(at);
    requests.arrival.remove(at);
    requests.deadline.remove(at);
    requests.priority.remove(at);
    requests.min_accuracy.remove(at);
}
