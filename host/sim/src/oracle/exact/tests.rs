use super::*;
use crate::oracle::tasks::tests::task;
use crate::random::{Purpose, Stream};
use switchyard_core::ids::{ExitId, VariantId};

fn option(accuracy: f64, latencies_us: &[u64]) -> BatchOption {
    BatchOption {
        variant: VariantId(0),
        exit: ExitId(0),
        stages: 1,
        accuracy,
        latencies_us: latencies_us.to_vec(),
    }
}

/// One app on workers of one kind.
fn value(list: Vec<ArrivalTask>, options: &[BatchOption], workers: usize) -> f64 {
    best(list, options, workers).value
}

fn best(list: Vec<ArrivalTask>, options: &[BatchOption], workers: usize) -> ExactSchedule {
    let menu = BatchMenu::from_options(vec![vec![options.to_vec()]; workers]);
    let kinds = vec![KindId(0); workers];
    schedule(&RunTasks { list, workers }, &menu, &kinds).unwrap()
}

fn is(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
}

/// Two requests at 0 with 10 us each. The accurate variant takes 8 us alone.
#[test]
fn a_batch_pays_if_it_is_in_time() {
    let pair = || vec![task(0, &[1], 10), task(0, &[1], 10)];
    let fast = option(0.5, &[2, 3]);
    // Together 9 us: both accurate.
    is(value(pair(), &[option(0.9, &[8, 9]), fast.clone()], 1), 1.8);
    // Together 12 us: one accurate, then one fast at 10 us.
    is(
        value(pair(), &[option(0.9, &[8, 12]), fast.clone()], 1),
        1.4,
    );
    // Alone 9 us: no time for the fast one after it; both fast.
    is(
        value(pair(), &[option(0.9, &[9, 12]), fast.clone()], 1),
        1.0,
    );
    // A second worker: both accurate, each alone.
    is(value(pair(), &[option(0.9, &[9, 12]), fast], 2), 1.8);
}

/// A long deadline at 0, a short one at 1: the worker idles until the second request is there.
#[test]
fn a_worker_waits_for_an_urgent_request() {
    let list = vec![task(0, &[1], 30), task(1, &[1], 10)];
    let found = best(list, &[option(1.0, &[10])], 1);
    let order: Vec<&[u32]> = found.batches.iter().map(|b| b.tasks.as_slice()).collect();
    assert_eq!(order, [&[1][..], &[0][..]]);
    is(found.value, 2.0);
}

/// The batch of both begins with the second arrival and is in time for both.
#[test]
fn a_batch_waits_for_its_last_request() {
    let list = vec![task(0, &[1], 12), task(3, &[1], 9)];
    is(value(list, &[option(0.8, &[8, 9])], 1), 1.6);
}

#[test]
fn a_request_without_a_chance_is_left_out() {
    let list = vec![task(0, &[1], 3), task(0, &[1], 8)];
    let found = best(list, &[option(0.8, &[4, 6])], 1);
    is(found.value, 0.8);
    assert_eq!(found.batches[0].tasks, [1]);
}

#[test]
fn runs_that_are_too_large_are_refused() {
    let list = (0..65).map(|at| task(at, &[1], 10)).collect();
    let menu = BatchMenu::from_options(vec![vec![vec![option(1.0, &[1])]]]);
    let found = schedule(&RunTasks { list, workers: 1 }, &menu, &[KindId(0)]);
    let reason = found.unwrap_err().to_string();
    assert!(
        reason.contains("has 65") && reason.contains("at most 64"),
        "{reason}"
    );
}

/// Against every sequence of batches of any sets of requests.
#[test]
fn no_sequence_of_batches_is_better() {
    for seed in 0..40 {
        let mut draws = Stream::new(seed, Purpose::Arrivals, 0);
        let mut below = |bound: u64| (draws.uniform() * bound as f64) as u64;
        let mut list: Vec<ArrivalTask> = (0..5)
            .map(|_| task(below(20), &[1], 8 + below(20)))
            .collect();
        list.sort_by_key(|task| task.arrival);
        for task in &mut list {
            task.app = AppId(below(2) as u32);
        }
        let mut steps = |from: u64| -> Vec<u64> {
            let mut us = from + below(4);
            (0..3)
                .map(|_| {
                    us += 1 + below(4);
                    us
                })
                .collect()
        };
        let workers: Vec<Vec<Vec<BatchOption>>> = (0..2)
            .map(|_| {
                (0..2)
                    .map(|_| vec![option(0.9, &steps(5)), option(0.6, &steps(2))])
                    .collect()
            })
            .collect();
        let menu = BatchMenu::from_options(workers);
        let kinds = [KindId(0), KindId(1)];
        let tasks = RunTasks { list, workers: 2 };
        let found = schedule(&tasks, &menu, &kinds).unwrap();
        is(found.value, all(&tasks.list, &menu, (1 << 5) - 1, [0, 0]));
    }
}

/// The best value of all sequences of batches of the requests that are left.
fn all(tasks: &[ArrivalTask], menu: &BatchMenu, left: u64, free_us: [u64; 2]) -> f64 {
    let mut best: f64 = 0.0;
    for set in 1..=left {
        if set & !left != 0 {
            continue;
        }
        let batch: Vec<&ArrivalTask> = members(set).map(|task| &tasks[task as usize]).collect();
        let app = batch[0].app;
        if batch.iter().any(|task| task.app != app) {
            continue;
        }
        let arrived = batch.iter().map(|task| task.arrival.0).max().unwrap();
        for worker in 0..2 {
            for option in menu.of(WorkerId(worker), app) {
                let Some(latency_us) = option.latencies_us.get(batch.len() - 1) else {
                    continue;
                };
                let mut free_us = free_us;
                let free = &mut free_us[worker as usize];
                *free = arrived.max(*free) + latency_us;
                let in_time = batch.iter().filter(|task| task.deadline.0 >= *free);
                let value = option.accuracy * in_time.count() as f64;
                best = best.max(value + all(tasks, menu, left & !set, free_us));
            }
        }
    }
    best
}
