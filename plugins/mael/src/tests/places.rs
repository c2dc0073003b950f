//! The selection phase: places in a queue.

use proptest::prelude::*;
use switchyard_sdk::{BatchId, RequestId, WorkerId};

use crate::line::{Entry, Length, Line, Place};
use crate::score::Rule;

fn entry(work_us: u64, age_us: u64, slo_us: u64) -> Entry {
    Entry {
        id: RequestId(0),
        work_us,
        age_us,
        slo_us,
        place: Place::Queued {
            batch: BatchId(1),
            mine: true,
        },
        length: Length::Short,
    }
}

fn line(busy_us: u64, order: Vec<Entry>) -> Line {
    Line {
        worker: WorkerId(0),
        is_up: true,
        room: 8,
        busy_us,
        runs_long: false,
        order,
    }
}

#[test]
fn the_shorter_goes_first_and_equals_in_turn() {
    let queue = line(
        5,
        vec![entry(10, 0, 900), entry(20, 0, 900), entry(30, 0, 900)],
    );
    let place = |work_us| queue.best_place(Rule::Latency, &entry(work_us, 0, 900));
    assert_eq!(
        [place(5), place(10), place(20), place(25), place(40)],
        [0, 1, 2, 2, 3]
    );
}

#[test]
fn under_slos_what_would_be_late_is_passed_last() {
    // 20 of work with 25 left waits; one of 10 would end first by latency, but then the other
    // one ends at 30 of its 25.
    let queue = line(0, vec![entry(20, 0, 25)]);
    let new = entry(10, 0, 40);
    assert_eq!(queue.best_place(Rule::Latency, &new), 0);
    assert_eq!(queue.best_place(Rule::Slo, &new), 1);
    // Its age counts: behind the other a task that is 15 old ends at 45/40 = 1.125, which is less
    // than 30/25 = 1.2; one that is 20 old at 1.25.
    assert_eq!(queue.best_place(Rule::Slo, &entry(10, 15, 40)), 1);
    assert_eq!(queue.best_place(Rule::Slo, &entry(10, 20, 40)), 0);
}

/// Sum of degrees, then of latencies, with an entry at each place.
fn cost(line: &Line, rule: Rule, entry: &Entry, place: usize) -> (f64, u64) {
    let mut order = line.order.clone();
    order.insert(place, *entry);
    let (mut end_us, mut degrees, mut latencies_us) = (line.busy_us, 0.0, 0);
    for entry in &order {
        end_us += entry.work_us;
        latencies_us += end_us;
        degrees += if rule == Rule::Slo {
            entry.missed(end_us)
        } else {
            0.0
        };
    }
    (degrees, latencies_us)
}

proptest! {
    #[test]
    fn the_place_is_the_best_of_all(
        busy_us in 0..50_u64,
        queue in proptest::collection::vec((1..40_u64, 0..60_u64, 10..200_u64), 0..8),
        new in (1..40_u64, 0..60_u64, 10..200_u64),
        with_slos in any::<bool>(),
    ) {
        let made = |(work, age, slo)| entry(work, age, slo);
        let line = line(busy_us, queue.into_iter().map(made).collect());
        let new = made(new);
        let rule = if with_slos { Rule::Slo } else { Rule::Latency };
        let chosen = cost(&line, rule, &new, line.best_place(rule, &new));
        for place in 0..=line.order.len() {
            let other = cost(&line, rule, &new, place);
            let close = (other.0 - chosen.0).abs() < 1e-9;
            prop_assert!(close && chosen.1 <= other.1 || !close && chosen.0 < other.0);
        }
    }
}
