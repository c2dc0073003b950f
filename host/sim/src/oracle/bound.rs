//! A lower bound of the ANTT of any schedule, clairvoyant and preemptive ones included.
//!
//! Give worker i a price `v_i >= 0`, where all prices add up to 1, and task j the work
//! `q_j = min_i v_i p_ij`, where `p_ij` is the latency of j on i. A worker that runs j for a time dt
//! finishes the share `dt / p_ij` of j, which is at most `v_i dt` of work: all workers together do at
//! most 1 of work per unit of time. So any preemptive, migrating schedule is also a schedule of one
//! machine that may serve several tasks at once, with times `q_j` and the same arrivals `r_j`. Let
//! `M_j` be the mean time at which the machine works on j. The sum of `w_j M_j` is least if the task
//! with the largest `w_j / q_j` is always served first (preemptive Smith's rule; Goemans, "Improved
//! approximation algorithms for scheduling with release dates", 1997). Only one worker at a time works
//! on a task, so the task takes at least its time alone, `s_j`, and ends at `M_j + s_j / 2` at the
//! earliest. With `w_j = 1 / s_j`:
//!
//! ```text
//! n ANTT = sum (C_j - r_j) / s_j >= sum (M_j - r_j) / s_j + n / 2
//! ```
//!
//! This holds for all prices; the result is the largest bound of the prices tried, and at least 1,
//! because no turnaround is shorter than the time alone.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::tasks::{ArrivalTask, RunTasks};
use crate::scenario::{Scenario, SimError};

/// Rounds in which the price of each worker is raised and lowered.
const ROUNDS: usize = 12;

/// The factor of the first round; its distance from 1 shrinks by 0.7 per round.
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

/// A lower bound of the ANTT of all schedules of a run.
pub(crate) fn antt_least(scenario: &Scenario, seed: u64) -> Result<f64, SimError> {
    Ok(antt(&RunTasks::of_run(scenario, seed)?))
}

/// The bound; 1 without tasks.
fn antt(tasks: &RunTasks) -> f64 {
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
fn at_prices(tasks: &[ArrivalTask], prices: &[f64]) -> f64 {
    let work = |task: &ArrivalTask| {
        let options = task.options.iter().zip(prices);
        let work =
            options.filter_map(|(option, price)| Some(price * option.as_ref()?.latency.0 as f64));
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

    /// With one worker there is one price. Both tasks are there at time 0, and Smith's rule ends the
    /// one of 1 ms first, then the one of 3 ms.
    #[test]
    fn one_worker_is_bounded_by_smiths_rule() {
        let tasks = RunTasks {
            list: vec![task(0, &[3_000], 1), task(0, &[1_000], 1)],
            workers: 1,
        };
        assert!((antt(&tasks) - (1.0 + 4.0 / 3.0) / 2.0).abs() < 1e-9);
    }

    /// Two workers, each fast at one kind of task: the prices show that neither can help the other.
    #[test]
    fn prices_reflect_specialised_workers() {
        let list = (0..20).map(|i| match i % 2 {
            0 => task(0, &[1_000, 100_000], 1),
            _ => task(0, &[100_000, 1_000], 1),
        });
        let tasks = RunTasks {
            list: list.collect(),
            workers: 2,
        };
        // Ten in a row on each worker: turnarounds of 1 to 10.
        let best = 5.5;
        let bound = antt(&tasks);
        assert!(bound <= best && bound > 0.85 * best, "{bound}");
    }
}
