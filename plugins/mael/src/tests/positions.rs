//! The selection phase: positions in a queue.

use proptest::prelude::*;
use switchyard_sdk::{BatchId, RequestId, WorkerId};

use crate::queue::{EntryState, QueueEntry, RunLength, WorkerQueue};
use crate::score::ScoreRule;

fn entry(work_us: u64, age_us: u64, slo_us: u64) -> QueueEntry {
    QueueEntry {
        id: RequestId(0),
        work_us,
        age_us,
        slo_us,
        state: EntryState::Queued {
            batch: BatchId(1),
            mine: true,
        },
        length: RunLength::Short,
    }
}

fn worker_queue(busy_us: u64, order: Vec<QueueEntry>) -> WorkerQueue {
    WorkerQueue {
        worker: WorkerId(0),
        is_up: true,
        room: 8,
        busy_us,
        runs_long: false,
        order,
    }
}

#[test]
fn shorter_tasks_pass_longer_ones_and_equal_ones_do_not() {
    let queue = worker_queue(
        5,
        vec![entry(10, 0, 900), entry(20, 0, 900), entry(30, 0, 900)],
    );
    let place = |work_us| queue.best_position(ScoreRule::Latency, &entry(work_us, 0, 900));
    assert_eq!(
        [place(5), place(10), place(20), place(25), place(40)],
        [0, 1, 2, 2, 3]
    );
}

#[test]
fn under_slos_the_least_violation_decides() {
    // Work 20 with SLO 25 waits. By latency a task of 10 passes it, which then ends at 30 > 25.
    let queue = worker_queue(0, vec![entry(20, 0, 25)]);
    let new = entry(10, 0, 40);
    assert_eq!(queue.best_position(ScoreRule::Latency, &new), 0);
    assert_eq!(queue.best_position(ScoreRule::Slo, &new), 1);
    // Age counts: a task of age 15 at the end has degree 45/40 = 1.125 < 30/25 = 1.2; of age 20,
    // 1.25.
    assert_eq!(queue.best_position(ScoreRule::Slo, &entry(10, 15, 40)), 1);
    assert_eq!(queue.best_position(ScoreRule::Slo, &entry(10, 20, 40)), 0);
}

/// Sum of degrees, then of latencies, with an entry at a position.
fn cost(queue: &WorkerQueue, rule: ScoreRule, entry: &QueueEntry, place: usize) -> (f64, u64) {
    let mut order = queue.order.clone();
    order.insert(place, *entry);
    let (mut end_us, mut degrees, mut latencies_us) = (queue.busy_us, 0.0, 0);
    for entry in &order {
        end_us += entry.work_us;
        latencies_us += end_us;
        degrees += if rule == ScoreRule::Slo {
            entry.missed(end_us)
        } else {
            0.0
        };
    }
    (degrees, latencies_us)
}

proptest! {
    #[test]
    fn the_position_is_the_best_of_all(
        busy_us in 0..50_u64,
        queue in proptest::collection::vec((1..40_u64, 0..60_u64, 10..200_u64), 0..8),
        new in (1..40_u64, 0..60_u64, 10..200_u64),
        with_slos in any::<bool>(),
    ) {
        let made = |(work, age, slo)| entry(work, age, slo);
        let queue = worker_queue(busy_us, queue.into_iter().map(made).collect());
        let new = made(new);
        let rule = if with_slos { ScoreRule::Slo } else { ScoreRule::Latency };
        let chosen = cost(&queue, rule, &new, queue.best_position(rule, &new));
        for place in 0..=queue.order.len() {
            let other = cost(&queue, rule, &new, place);
            let close = (other.0 - chosen.0).abs() < 1e-9;
            prop_assert!(close && chosen.1 <= other.1 || !close && chosen.0 < other.0);
        }
    }
}
