//! An ANTT that no schedule can be below, whatever it knows, however it cuts runs.
//!
//! Give worker i a price `v_i >= 0`, all prices summing to 1, and task j the work
//! `q_j = min_i v_i p_ij`, p being latencies. A worker that runs j for a time dt finishes the share
//! `dt / p_ij` of it, so at most `v_i dt` of work: together workers do at most 1 of work per unit
//! of time. Any schedule, cut and moved as it likes, is so a schedule of one machine that may serve
//! several tasks at once, with times q_j and the same arrivals r_j. There the sum of `w_j M_j`, M
//! being the mean time at which j is worked on, is least when the task of the largest `w_j / q_j`
//! is always served first (preemptive Smith's rule; Goemans, "Improved approximation algorithms
//! for scheduling with release dates", 1997). No task is worked on by two workers at a time, so
//! that it takes at least its time alone, `s_j`, and ends at `M_j + s_j / 2` at the earliest. With
//! `w_j = 1 / s_j`:
//!
//! ```text
//! n ANTT = sum (C_j - r_j) / s_j >= sum (M_j - r_j) / s_j + n / 2
//! ```
//!
//! This holds for all prices; the best of those tried counts. Nobody's ANTT is below 1 either.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::tasks::{Task, Tasks};

/// Rounds in which every worker's price is raised and lowered.
const ROUNDS: usize = 12;

/// The first factor by which a price is changed; its square root from round to round, about.
const STEP: f64 = 4.0;

/// A task that waits for the one machine.
#[derive(PartialEq)]
struct Waiting {
    /// Smith's ratio.
    ratio: f64,
    task: usize,
}

impl Eq for Waiting {}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_ratio = self.ratio.total_cmp(&other.ratio);
        by_ratio.then(other.task.cmp(&self.task))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The least ANTT; 1 without any tasks.
pub(super) fn antt(tasks: &Tasks) -> f64 {
    let mut prices = vec![1.0 / tasks.workers.max(1) as f64; tasks.workers];
    let mut best = at_prices(&tasks.list, &prices);
    let mut step = STEP;
    for _ in 0..ROUNDS {
        for worker in 0..prices.len() {
            for factor in [step, 1.0 / step] {
                let mut tried = prices.clone();
                tried[worker] *= factor;
                let sum: f64 = tried.iter().sum();
                tried.iter_mut().for_each(|price| *price /= sum);
                let found = at_prices(&tasks.list, &tried);
                if found > best {
                    (best, prices) = (found, tried);
                }
            }
        }
        step = 1.0 + (step - 1.0) * 0.7;
    }
    best.max(1.0)
}

/// The bound at these prices.
fn at_prices(tasks: &[Task], prices: &[f64]) -> f64 {
    let work = |task: &Task| {
        let ways = task.ways.iter().zip(prices);
        let work = ways.filter_map(|(way, price)| Some(price * way.as_ref()?.latency.0 as f64));
        work.fold(f64::INFINITY, f64::min)
    };
    let works: Vec<f64> = tasks.iter().map(work).collect();
    let weight = |task: usize| 1.0 / tasks[task].alone.0 as f64;
    let mut left = works.clone();
    let mut waiting = BinaryHeap::<Waiting>::new();
    let (mut now, mut sum) = (0.0, 0.0);
    for next in 0..=tasks.len() {
        let until = tasks
            .get(next)
            .map_or(f64::INFINITY, |t| t.arrival.0 as f64);
        while let Some(first) = waiting.peek().filter(|_| now < until) {
            let task = first.task;
            let served = left[task].min(until - now);
            // Its share of the task's mean time of work.
            let share = if works[task] > 0.0 {
                served / works[task]
            } else {
                1.0
            };
            sum += weight(task) * share * (now + served / 2.0 - tasks[task].arrival.0 as f64);
            now += served;
            left[task] -= served;
            if left[task] <= works[task] * 1e-12 {
                waiting.pop();
            }
        }
        if next < tasks.len() {
            now = until.max(now);
            let ratio = weight(next) / works[next];
            waiting.push(Waiting { ratio, task: next });
        }
    }
    sum / tasks.len().max(1) as f64 + 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::tasks::tests::task;

    /// On one worker the prices are no choice, and tasks that are all here end by Smith's rule: 1,
    /// then 3 after it.
    #[test]
    fn one_worker_is_bounded_by_smiths_rule() {
        let tasks = Tasks {
            list: vec![task(0, &[3_000], 1), task(0, &[1_000], 1)],
            workers: 1,
        };
        assert!((antt(&tasks) - (1.0 + 4.0 / 3.0) / 2.0).abs() < 1e-9);
    }

    /// Two workers, of which each is good at one thing: prices see that neither can help the other.
    #[test]
    fn prices_keep_apart_what_belongs_apart() {
        let list = (0..20).map(|i| match i % 2 {
            0 => task(0, &[1_000, 100_000], 1),
            _ => task(0, &[100_000, 1_000], 1),
        });
        let tasks = Tasks {
            list: list.collect(),
            workers: 2,
        };
        // Ten in a row on each: 1 to 10.
        let best = 5.5;
        let bound = antt(&tasks);
        assert!(bound <= best && bound > 0.85 * best, "{bound}");
    }
}
