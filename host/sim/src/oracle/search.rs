//! A good schedule of known tasks: each is put where it costs least, in the order of arrivals; then
//! again and again a few that are near each other are taken out and put back, and what is not worse
//! is kept (large neighbourhood search; Shaw, 1998).
//!
//! A schedule is a line per worker. A worker runs its line in order, each task as soon as the one
//! before it has ended and it has arrived itself; so a worker may wait for a short task although a
//! long one is there.

use super::Goal;
use super::tasks::{Task, Tasks};
use crate::random::{Purpose, Stream};

/// Attempts per task.
const ATTEMPTS: usize = 60;

/// Most tasks that are taken out at once.
const OUT_MAX: usize = 6;

/// They are this near in the order of arrivals.
const NEAR: usize = 12;

/// What a task past its deadline costs, in units of ANTT times tasks: more than all turnarounds can.
const LATE: f64 = 1e6;

/// A task in its place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    task: u32,
    end_us: u64,
}

struct Search<'a> {
    tasks: &'a [Task],
    goal: Goal,
    lines: Vec<Vec<Slot>>,
}

/// Where a task may be put, and what that costs everybody.
struct Place {
    worker: usize,
    at: usize,
    cost: f64,
}

/// The order of tasks on each worker.
pub(super) fn schedule(tasks: &Tasks, goal: Goal, seed: u64) -> Vec<Vec<u32>> {
    let mut search = Search {
        tasks: &tasks.list,
        goal,
        lines: vec![Vec::new(); tasks.workers],
    };
    for task in 0..tasks.list.len() as u32 {
        search.insert(task);
    }
    search.improve(seed);
    let order = |line: &Vec<Slot>| line.iter().map(|slot| slot.task).collect();
    search.lines.iter().map(order).collect()
}

// === impl Search ===

impl Search<'_> {
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
            let before = self.lines.clone();
            for &task in &out {
                self.remove(task);
            }
            // In the order drawn half of the time, else the shortest first.
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
                self.lines = before;
            }
        }
    }

    fn cost(&self) -> f64 {
        let slots = self.lines.iter().flatten();
        slots.map(|slot| self.cost_of(slot.task, slot.end_us)).sum()
    }

    fn cost_of(&self, task: u32, end_us: u64) -> f64 {
        let task = &self.tasks[task as usize];
        let turnaround = (end_us - task.arrival.0) as f64 / task.alone.0 as f64;
        match self.goal {
            Goal::Deadlines if end_us > task.deadline.0 => LATE + turnaround,
            _ => turnaround,
        }
    }

    /// When a task ends on a worker that is free from a moment on; none where it cannot run.
    fn end_us(&self, task: u32, worker: usize, free_us: u64) -> Option<u64> {
        let task = &self.tasks[task as usize];
        let way = task.ways[worker]?;
        Some(free_us.max(task.arrival.0) + way.latency.0)
    }

    /// Puts a task where it costs least.
    fn insert(&mut self, task: u32) {
        let mut best: Option<Place> = None;
        for worker in 0..self.lines.len() {
            self.best_on(task, worker, &mut best);
        }
        let Some(place) = best else {
            return; // No task is here that no worker can run.
        };
        let slot = Slot { task, end_us: 0 };
        self.lines[place.worker].insert(place.at, slot);
        self.settle(place.worker, place.at);
    }

    /// The best place on a worker, if it is better than the best so far.
    fn best_on(&self, task: u32, worker: usize, best: &mut Option<Place>) {
        let line = &self.lines[worker];
        let arrival_us = self.tasks[task as usize].arrival.0;
        // In front of what has ended when it arrives it would only hold others up.
        let first = line.partition_point(|slot| slot.end_us <= arrival_us);
        for at in first..=line.len() {
            let bound = best.as_ref().map_or(f64::INFINITY, |best| best.cost);
            let free_us = at.checked_sub(1).map_or(0, |before| line[before].end_us);
            let Some(mut end_us) = self.end_us(task, worker, free_us) else {
                return;
            };
            let mut cost = self.cost_of(task, end_us);
            if cost >= bound {
                return; // Farther back it ends later.
            }
            for slot in &line[at..] {
                let moved = self.end_us(slot.task, worker, end_us);
                end_us = moved.unwrap_or(slot.end_us);
                if end_us == slot.end_us || cost >= bound {
                    break;
                }
                cost += self.cost_of(slot.task, end_us) - self.cost_of(slot.task, slot.end_us);
            }
            if cost < bound {
                *best = Some(Place { worker, at, cost });
            }
        }
    }

    fn remove(&mut self, task: u32) {
        for worker in 0..self.lines.len() {
            let line = &mut self.lines[worker];
            if let Some(at) = line.iter().position(|slot| slot.task == task) {
                line.remove(at);
                self.settle(worker, at);
                return;
            }
        }
    }

    /// Ends from a place on, as far as they have changed.
    fn settle(&mut self, worker: usize, from: usize) {
        let before = from.checked_sub(1);
        let mut free_us = before.map_or(0, |before| self.lines[worker][before].end_us);
        for at in from..self.lines[worker].len() {
            let slot = self.lines[worker][at];
            let end_us = self.end_us(slot.task, worker, free_us);
            let end_us = end_us.unwrap_or(free_us);
            if end_us == slot.end_us {
                return;
            }
            self.lines[worker][at].end_us = end_us;
            free_us = end_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::tasks::tests::task;

    /// One worker. A long task is here and a short one comes right after it: knowing that, one
    /// waits.
    #[test]
    fn a_worker_waits_for_what_it_knows_will_come() {
        let tasks = Tasks {
            list: vec![task(0, &[3_000], 10_000), task(1, &[1_000], 10_000)],
            workers: 1,
        };
        assert_eq!(schedule(&tasks, Goal::Turnaround, 1), [[1, 0]]);
    }

    /// The short one has time, the long one has not.
    #[test]
    fn deadlines_go_before_turnarounds() {
        let tasks = Tasks {
            list: vec![task(0, &[3_000], 3_000), task(1, &[1_000], 10_000)],
            workers: 1,
        };
        assert_eq!(schedule(&tasks, Goal::Turnaround, 1), [[1, 0]]);
        assert_eq!(schedule(&tasks, Goal::Deadlines, 1), [[0, 1]]);
    }

    /// All orders on two workers of six tasks, tried one by one.
    #[test]
    fn small_problems_are_solved_to_the_best() {
        for seed in 0..20 {
            let mut draws = Stream::new(seed, Purpose::Arrivals, 0);
            let mut below = |bound: u64| (draws.uniform() * bound as f64) as u64;
            let mut list: Vec<Task> = (0..6)
                .map(|_| {
                    let latencies = [100 + below(900), 100 + below(900)];
                    task(below(800), &latencies, 800)
                })
                .collect();
            list.sort_by_key(|task| task.arrival);
            let tasks = Tasks { list, workers: 2 };
            for goal in Goal::ALL {
                let mut search = Search {
                    tasks: &tasks.list,
                    goal,
                    lines: vec![Vec::new(); 2],
                };
                for (worker, line) in schedule(&tasks, goal, seed).iter().enumerate() {
                    for &task in line {
                        search.lines[worker].push(Slot { task, end_us: 0 });
                    }
                    search.settle(worker, 0);
                }
                let found = search.cost();
                search.lines = vec![Vec::new(); 2];
                let best = all(&mut search, &mut [false; 6]);
                assert!(
                    (found - best).abs() < 1e-6,
                    "{goal:?}, seed {seed}: {found} {best}"
                );
            }
        }
    }

    /// The least cost of all ways to put the tasks that are left behind those that are placed.
    fn all(search: &mut Search<'_>, placed: &mut [bool]) -> f64 {
        if placed.iter().all(|is| *is) {
            return search.cost();
        }
        let mut best = f64::INFINITY;
        for task in 0..placed.len() {
            if placed[task] {
                continue;
            }
            placed[task] = true;
            for worker in 0..search.lines.len() {
                let end_us = 0;
                let at = search.lines[worker].len();
                search.lines[worker].push(Slot {
                    task: task as u32,
                    end_us,
                });
                search.settle(worker, at);
                best = best.min(all(search, placed));
                search.lines[worker].pop();
            }
            placed[task] = false;
        }
        best
    }
}
