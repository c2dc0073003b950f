//! A good schedule of known tasks, by large neighbourhood search (Shaw, 1998).
//!
//! Each task is inserted at its cheapest position, in the order of arrivals. Then, many times, a few
//! tasks with near arrivals are removed and inserted again; a schedule that is not worse is kept.
//!
//! A schedule is a sequence of tasks per worker. A worker starts each task as soon as the one before
//! has ended and the task has arrived; so it may wait for a short task although a long one is there.

use switchyard_core::ids::WorkerId;

use super::goal::Goal;
use super::tasks::{ArrivalTask, RunTasks};
use crate::random::{Purpose, Stream};

/// Attempts per task.
const ATTEMPTS: usize = 60;

/// Most tasks that are removed at once.
const OUT_MAX: usize = 6;

/// Removed tasks are among this many successive arrivals.
const NEAR: usize = 12;

/// Cost of a missed deadline, in turnarounds over times alone: more than all turnarounds together.
const LATE: f64 = 1e6;

/// A task in the sequence of a worker.
#[derive(Clone, Copy, Debug)]
struct ScheduledTask {
    task: u32,
    end_us: u64,
}

struct ScheduleSearch<'a> {
    tasks: &'a [ArrivalTask],
    goal: Goal,
    /// By worker.
    sequences: Vec<Vec<ScheduledTask>>,
}

/// A position in the sequence of a worker, and the increase of the total cost.
struct Insertion {
    worker: WorkerId,
    at: usize,
    cost: f64,
}

/// The order of tasks on each worker.
pub(super) fn schedule(tasks: &RunTasks, goal: Goal, seed: u64) -> Vec<Vec<u32>> {
    let mut search = ScheduleSearch {
        tasks: &tasks.list,
        goal,
        sequences: vec![Vec::new(); tasks.workers],
    };
    for task in 0..tasks.list.len() as u32 {
        search.insert(task);
    }
    search.improve(seed);
    let order =
        |sequence: &Vec<ScheduledTask>| sequence.iter().map(|scheduled| scheduled.task).collect();
    search.sequences.iter().map(order).collect()
}

// === impl ScheduleSearch ===

impl ScheduleSearch<'_> {
    fn improve(&mut self, seed: u64) {
        let count = self.tasks.len();
        if count < 2 {
            return;
        }
        let mut draws = Stream::new(seed, Purpose::Foresight, 0);
        let mut below = move |bound: usize| (draws.uniform() * bound as f64) as usize;
        let mut cost = self.cost();
        for _ in 0..ATTEMPTS * count {
            let centre = below(count);
            let first = centre.saturating_sub(NEAR / 2);
            let span = NEAR.min(count - first);
            let mut out: Vec<u32> = Vec::with_capacity(OUT_MAX);
            for _ in 0..2 + below(OUT_MAX - 1) {
                let task = (first + below(span)) as u32;
                if !out.contains(&task) {
                    out.push(task);
                }
            }
            let before = self.sequences.clone();
            for &task in &out {
                self.remove(task);
            }
            // In the order drawn half of the time, otherwise the shortest first.
            if below(2) == 0 {
                out.sort_by_key(|&task| self.tasks[task as usize].alone);
            }
            for &task in &out {
                self.insert(task);
            }
            let now = self.cost();
            if now <= cost {
                cost = now;
            } else {
                self.sequences = before;
            }
        }
    }

    fn workers(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.sequences.len() as u32).map(WorkerId)
    }

    fn cost(&self) -> f64 {
        let all = self.sequences.iter().flatten();
        all.map(|scheduled| self.cost_of(scheduled.task, scheduled.end_us))
            .sum()
    }

    fn cost_of(&self, task: u32, end_us: u64) -> f64 {
        let task = &self.tasks[task as usize];
        let turnaround = (end_us - task.arrival.0) as f64 / task.alone.0 as f64;
        match self.goal {
            Goal::Deadlines if end_us > task.deadline.0 => LATE + turnaround,
            _ => turnaround,
        }
    }

    /// The end of a task on a worker that is free from a time on; none if the worker cannot run it.
    fn end_us(&self, task: u32, worker: WorkerId, free_us: u64) -> Option<u64> {
        let task = &self.tasks[task as usize];
        let option = task.options[worker.index()]?;
        Some(free_us.max(task.arrival.0) + option.latency.0)
    }

    /// Inserts a task at its cheapest position.
    fn insert(&mut self, task: u32) {
        let mut best: Option<Insertion> = None;
        for worker in self.workers() {
            self.best_on(task, worker, &mut best);
        }
        let Some(best) = best else {
            return; // Not reached: `RunTasks` has only tasks that some worker can run.
        };
        let scheduled = ScheduledTask { task, end_us: 0 };
        self.sequences[best.worker.index()].insert(best.at, scheduled);
        self.settle(best.worker, best.at);
    }

    /// The cheapest position on a worker, if it is cheaper than the best so far.
    fn best_on(&self, task: u32, worker: WorkerId, best: &mut Option<Insertion>) {
        let sequence = &self.sequences[worker.index()];
        let arrival_us = self.tasks[task as usize].arrival.0;
        // Before tasks that end before it arrives, it would only delay them.
        let first = sequence.partition_point(|scheduled| scheduled.end_us <= arrival_us);
        for at in first..=sequence.len() {
            let bound = best.as_ref().map_or(f64::INFINITY, |best| best.cost);
            let free_us = at
                .checked_sub(1)
                .map_or(0, |before| sequence[before].end_us);
            let Some(mut end_us) = self.end_us(task, worker, free_us) else {
                return;
            };
            let mut cost = self.cost_of(task, end_us);
            if cost >= bound {
                return; // Later positions end later.
            }
            for scheduled in &sequence[at..] {
                let moved = self.end_us(scheduled.task, worker, end_us);
                end_us = moved.unwrap_or(scheduled.end_us);
                if end_us == scheduled.end_us || cost >= bound {
                    break;
                }
                cost += self.cost_of(scheduled.task, end_us)
                    - self.cost_of(scheduled.task, scheduled.end_us);
            }
            if cost < bound {
                *best = Some(Insertion { worker, at, cost });
            }
        }
    }

    fn remove(&mut self, task: u32) {
        for worker in self.workers() {
            let sequence = &mut self.sequences[worker.index()];
            if let Some(at) = sequence.iter().position(|scheduled| scheduled.task == task) {
                sequence.remove(at);
                self.settle(worker, at);
                return;
            }
        }
    }

    /// Updates the ends from a position on, as far as they change.
    fn settle(&mut self, worker: WorkerId, from: usize) {
        let before = from.checked_sub(1);
        let mut free_us = before.map_or(0, |before| self.sequences[worker.index()][before].end_us);
        for at in from..self.sequences[worker.index()].len() {
            let scheduled = self.sequences[worker.index()][at];
            let end_us = self.end_us(scheduled.task, worker, free_us);
            let end_us = end_us.unwrap_or(free_us);
            if end_us == scheduled.end_us {
                return;
            }
            self.sequences[worker.index()][at].end_us = end_us;
            free_us = end_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::tasks::tests::task;

    /// One worker, a long task and a short one that arrives right after it.
    #[test]
    fn a_worker_waits_for_a_short_task() {
        let tasks = RunTasks {
            list: vec![task(0, &[3_000], 10_000), task(1, &[1_000], 10_000)],
            workers: 1,
        };
        assert_eq!(schedule(&tasks, Goal::Turnaround, 1), [[1, 0]]);
    }

    /// The short task has a late deadline, the long one an early deadline.
    #[test]
    fn deadlines_go_before_turnarounds() {
        let tasks = RunTasks {
            list: vec![task(0, &[3_000], 3_000), task(1, &[1_000], 10_000)],
            workers: 1,
        };
        assert_eq!(schedule(&tasks, Goal::Turnaround, 1), [[1, 0]]);
        assert_eq!(schedule(&tasks, Goal::Deadlines, 1), [[0, 1]]);
    }

    /// Against all orders of six tasks on two workers.
    #[test]
    fn small_problems_are_solved_optimally() {
        for seed in 0..20 {
            let mut draws = Stream::new(seed, Purpose::Arrivals, 0);
            let mut below = |bound: u64| (draws.uniform() * bound as f64) as u64;
            let mut list: Vec<ArrivalTask> = (0..6)
                .map(|_| {
                    let latencies = [100 + below(900), 100 + below(900)];
                    task(below(800), &latencies, 800)
                })
                .collect();
            list.sort_by_key(|task| task.arrival);
            let tasks = RunTasks { list, workers: 2 };
            for goal in Goal::ALL {
                let mut search = ScheduleSearch {
                    tasks: &tasks.list,
                    goal,
                    sequences: vec![Vec::new(); 2],
                };
                let orders = schedule(&tasks, goal, seed);
                for (worker, order) in (0..).map(WorkerId).zip(&orders) {
                    for &task in order {
                        search.sequences[worker.index()].push(ScheduledTask { task, end_us: 0 });
                    }
                    search.settle(worker, 0);
                }
                let found = search.cost();
                search.sequences = vec![Vec::new(); 2];
                let best = all(&mut search, &mut [false; 6]);
                assert!(
                    (found - best).abs() < 1e-6,
                    "{goal:?}, seed {seed}: {found} {best}"
                );
            }
        }
    }

    /// The least cost of all schedules that begin with the tasks that are placed.
    fn all(search: &mut ScheduleSearch<'_>, placed: &mut [bool]) -> f64 {
        if placed.iter().all(|is| *is) {
            return search.cost();
        }
        let mut best = f64::INFINITY;
        for task in 0..placed.len() {
            if placed[task] {
                continue;
            }
            placed[task] = true;
            for worker in search.workers() {
                let end_us = 0;
                let at = search.sequences[worker.index()].len();
                search.sequences[worker.index()].push(ScheduledTask {
                    task: task as u32,
                    end_us,
                });
                search.settle(worker, at);
                best = best.min(all(search, placed));
                search.sequences[worker.index()].pop();
            }
            placed[task] = false;
        }
        best
    }
}
