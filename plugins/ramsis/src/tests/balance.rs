//! Whose queue a request comes to.

use super::serve::remove;
use super::*;

/// A window with so many requests and all workers busy.
fn busy(catalog: &Catalog, requests: usize) -> WindowBuilder<'_> {
    let window = WindowBuilder::new(catalog).requests(requests, "image");
    let workers = 0..catalog.workers().len();
    workers.fold(window, |window, worker| window.busy(worker, 0, 50_000))
}

/// What each worker has, if all were idle now.
fn owned(policy: &Ramsis, requests: usize) -> Vec<u32> {
    let known = policy.queues.known.iter();
    assert_eq!(known.len(), requests);
    known.map(|known| known.worker).collect()
}

#[test]
fn requests_go_to_workers_in_turn_in_the_order_of_arrival() {
    let catalog = catalog(3);
    let mut policy = policy(&catalog);
    decide(&mut policy, &catalog, busy(&catalog, 2));
    assert_eq!(owned(&policy, 2), [0, 1]);
    // The turn goes on from window to window.
    decide(&mut policy, &catalog, busy(&catalog, 5));
    assert_eq!(owned(&policy, 5), [0, 1, 2, 0, 1]);
    // What is gone is forgotten, and the rest stays where it is.
    let mut window = busy(&catalog, 6).build();
    remove(&mut window, 2);
    run(&mut policy, &catalog, &window);
    assert_eq!(owned(&policy, 5), [0, 2, 0, 1, 2]);
}

#[test]
fn a_worker_that_is_away_gives_its_requests_back() {
    let catalog = catalog(3);
    let mut policy = policy(&catalog);
    decide(&mut policy, &catalog, busy(&catalog, 4));
    assert_eq!(owned(&policy, 4), [0, 1, 2, 0]);
    decide(&mut policy, &catalog, busy(&catalog, 5).away(0));
    assert_eq!(owned(&policy, 5), [1, 1, 2, 2, 1]);
    // It is back, and gets what comes from now on.
    decide(&mut policy, &catalog, busy(&catalog, 7));
    assert_eq!(owned(&policy, 7), [1, 1, 2, 2, 1, 2, 0]);
    // With all away nothing can be given.
    decide(
        &mut policy,
        &catalog,
        busy(&catalog, 1).away(0).away(1).away(2),
    );
    assert_eq!(owned(&policy, 1), [queues::NOBODY]);
}

#[test]
fn requests_join_the_shortest_queue_where_tables_say_so() {
    let catalog = catalog(3);
    let balancing = Balancing::ShortestQueue;
    put(
        "image",
        &Set {
            balancing,
            ..set(3)
        },
    );
    let mut policy = configured(&catalog, r#"{"tables": "image"}"#);
    // Two and one on the first workers; what runs counts.
    let first = decide(
        &mut policy,
        &catalog,
        WindowBuilder::new(&catalog).requests(3, "image"),
    );
    assert_eq!(first.len(), 3);
    let next = busy(&catalog, 5).build();
    let ids: Vec<u64> = next.requests.id.iter().map(|id| id + 3).collect();
    let mut window = next.clone();
    window.requests.id.clone_from(&ids);
    run(&mut policy, &catalog, &window);
    assert_eq!(owned(&policy, 5), [0, 1, 2, 0, 1]);
    // The last worker falls idle and takes its request; the next ones come to it, then to the
    // others in turn.
    window.workers.running_variant[2] = u32::MAX;
    window.now += 60_000;
    let decided = batches(run(&mut policy, &catalog, &window));
    assert_eq!(decided[0].0, 2);
    remove(&mut window, 6);
    window.workers.running_variant[2] = 0;
    for id in [9, 10, 11] {
        window.requests.id.push(id);
        window.requests.app.push(0);
        window.requests.arrival.push(window.now);
        window.requests.deadline.push(window.now + 100_000);
        window.requests.priority.push(0);
        window.requests.min_accuracy.push(0.0);
    }
    run(&mut policy, &catalog, &window);
    // Waiting and running: 3, 3 and 1 before; with 3 each it is the first one's turn.
    assert_eq!(owned(&policy, 7), [0, 1, 0, 1, 2, 2, 0]);
}

#[test]
fn what_arrived_while_a_worker_was_busy_did_not_find_it_idle() {
    let catalog = catalog(2);
    let balancing = Balancing::ShortestQueue;
    put(
        "image",
        &Set {
            balancing,
            ..set(2)
        },
    );
    let mut policy = configured(&catalog, r#"{"tables": "image"}"#);
    // Both run one request, `large`: 60 ms. The first is next in turn.
    let first = WindowBuilder::new(&catalog).requests(2, "image");
    decide(&mut policy, &catalog, first);
    let owner = |age_us| {
        let mut policy = policy.clone();
        let window = WindowBuilder::new(&catalog).now_us(1_060_000);
        let mut window = window.request("image").age_us(age_us).busy(0, 1, 1).build();
        window.requests.id = vec![3];
        run(&mut policy, &catalog, &window);
        owned(&policy, 1)
    };
    assert_eq!(owner(0), [1], "it is idle");
    assert_eq!(owner(10), [0], "both were busy");
}

#[test]
fn queues_and_turns_are_handed_over() {
    let catalog = catalog(3);
    let mut before = policy(&catalog);
    decide(&mut before, &catalog, busy(&catalog, 4));
    let mut after = configured(&catalog, r#"{"tables": "image"}"#);
    after.restore(&before.save()).unwrap();
    decide(&mut after, &catalog, busy(&catalog, 5));
    assert_eq!(owned(&after, 5), [0, 1, 2, 0, 1]);
    // Another pool starts fresh.
    let other = super::catalog(2);
    let mut fresh = policy(&other);
    let error = fresh.restore(&before.save()).unwrap_err();
    assert_eq!(error, "state: is of other tables or workers");
    assert!(fresh.restore(b"{}").is_err());
}
