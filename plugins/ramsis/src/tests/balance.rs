//! The queue that a request joins.

use super::serve::remove;
use super::*;

/// A window with all workers busy.
fn busy(catalog: &Catalog, requests: usize) -> WindowBuilder<'_> {
    let window = WindowBuilder::new(catalog).requests(requests, "image");
    let workers = 0..catalog.workers().len();
    workers.fold(window, |window, worker| window.busy(worker, 0, 50_000))
}

/// A request in no worker's queue.
const NO_WORKER: u32 = u32::MAX;

/// The worker of each request.
fn owned(policy: &Ramsis, requests: usize) -> Vec<u32> {
    let known = policy.queues.known.iter();
    assert_eq!(known.len(), requests);
    known
        .map(|known| known.worker.map_or(NO_WORKER, |worker| worker.0))
        .collect()
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
    // Gone requests are dropped; the others keep their workers.
    let mut window = busy(&catalog, 6).build();
    remove(&mut window, 2);
    run(&mut policy, &catalog, &window);
    assert_eq!(owned(&policy, 5), [0, 2, 0, 1, 2]);
}

#[test]
fn requests_of_a_worker_that_is_down_are_assigned_again() {
    let catalog = catalog(3);
    let mut policy = policy(&catalog);
    decide(&mut policy, &catalog, busy(&catalog, 4));
    assert_eq!(owned(&policy, 4), [0, 1, 2, 0]);
    decide(&mut policy, &catalog, busy(&catalog, 5).away(0));
    assert_eq!(owned(&policy, 5), [1, 1, 2, 2, 1]);
    // It is up again and gets new requests.
    decide(&mut policy, &catalog, busy(&catalog, 7));
    assert_eq!(owned(&policy, 7), [1, 1, 2, 2, 1, 2, 0]);
    // With all workers down no request is assigned.
    decide(
        &mut policy,
        &catalog,
        busy(&catalog, 1).away(0).away(1).away(2),
    );
    assert_eq!(owned(&policy, 1), [NO_WORKER]);
}

#[test]
fn requests_join_the_shortest_queue_if_the_tables_say_so() {
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
    // Running requests count.
    let first = decide(
        &mut policy,
        &catalog,
        WindowBuilder::new(&catalog).requests(3, "image"),
    );
    assert_eq!(first.len(), 3);
    let next = busy(&catalog, 5).build();
    let mut window = next.clone();
    let requests = window.requests.as_mut().unwrap();
    requests.id.iter_mut().for_each(|id| *id += 3);
    run(&mut policy, &catalog, &window);
    assert_eq!(owned(&policy, 5), [0, 1, 2, 0, 1]);
    // The last worker becomes idle and takes its request; the next requests join it, then the
    // others in turn.
    window.workers.running_variant[2] = u32::MAX;
    window.now += 60_000;
    let decided = batches(run(&mut policy, &catalog, &window));
    assert_eq!(decided[0].0, 2);
    remove(&mut window, 6);
    window.workers.running_variant[2] = 0;
    let requests = window.requests.as_mut().unwrap();
    for id in [9, 10, 11] {
        requests.id.push(id);
        requests.app.push(0);
        requests.arrival.push(window.now);
        requests.deadline.push(window.now + 100_000);
        requests.priority.push(0);
        requests.min_quality.push(0.0);
    }
    run(&mut policy, &catalog, &window);
    // Waiting and running: 3, 3 and 1 before; with 3 each the first worker is next.
    assert_eq!(owned(&policy, 7), [0, 1, 0, 1, 2, 2, 0]);
}

#[test]
fn an_arrival_counts_the_workers_that_were_busy_then() {
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
    // Both workers run one request with `large`: 60 ms. The first is next in turn.
    let first = WindowBuilder::new(&catalog).requests(2, "image");
    decide(&mut policy, &catalog, first);
    let owner = |age_us| {
        let mut policy = policy.clone();
        let window = WindowBuilder::new(&catalog).now_us(1_060_000);
        let mut window = window.request("image").age_us(age_us).busy(0, 1, 1).build();
        window.requests.as_mut().unwrap().id = vec![3];
        run(&mut policy, &catalog, &window);
        owned(&policy, 1)
    };
    assert_eq!(owner(0), [1], "the second worker is idle");
    assert_eq!(owner(10), [0], "both workers were busy");
}

#[test]
fn queues_and_turns_are_restored() {
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
    assert_eq!(error, "state: saved for other tables or workers");
    assert!(fresh.restore(b"{}").is_err());
}
