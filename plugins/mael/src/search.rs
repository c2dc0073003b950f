//! The evaluation phase: the candidate with the highest score (Algorithm 1, lines 3 to 11).

use crate::problem::{Candidate, Problem};
use crate::score::{Rule, Score};

/// Scorings that the improvement beyond the exact search may take, times tasks.
const MOVES_MAX: usize = 2_000;

/// How well the best candidate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// There is no better one.
    Exact,
    /// Better ones may exist; the fastest processor for each task is none.
    Improved,
}

/// The best candidate: exact up to `exact_max` tasks and `nodes_max` nodes of the search, by
/// branch and bound instead of the paper's enumeration.
///
/// Never below AFF on the window's score, exact or not: AFF's mapping is the first incumbent,
/// and [`replace`] and [`improve`] put another in its place only where that one's score
/// [is above](Score::is_above). A chain of replacements that each raise the score ends no lower
/// than it began.
pub(crate) fn best(problem: &Problem, exact_max: usize, nodes_max: usize) -> (Candidate, Found) {
    let mut best = problem.candidate(problem.fastest());
    replace(&mut best, problem.candidate(one_by_one(problem)));
    if problem.tasks.len() <= exact_max {
        let mut search = Search::new(problem, best, nodes_max);
        if search.branch(0, Score::default()) {
            return (search.best, Found::Exact);
        }
        best = search.best;
    }
    improve(problem, &mut best);
    (best, Found::Improved)
}

fn replace(best: &mut Candidate, other: Candidate) {
    if other.score.is_above(best.score) {
        *best = other;
    }
}

/// Each task in turn where it raises the score most, given those before it.
fn one_by_one(problem: &Problem) -> Vec<usize> {
    let mut loads = problem.waits.clone();
    let mut to = Vec::with_capacity(problem.tasks.len());
    let mut so_far = Score::default();
    for task in 0..problem.tasks.len() {
        let mut chosen: Option<(usize, Score)> = None;
        for (processor, &load_us) in loads.iter().enumerate() {
            let score = problem.add(so_far, task, processor, load_us);
            if chosen.is_none_or(|(_, best)| score.is_above(best)) {
                chosen = Some((processor, score));
            }
        }
        let Some((processor, score)) = chosen else {
            break;
        };
        so_far = score;
        loads[processor] += problem.latency(task, processor);
        to.push(processor);
    }
    to
}

/// Moves single tasks while that raises the score and the bound on the work allows.
fn improve(problem: &Problem, best: &mut Candidate) {
    let tasks = problem.tasks.len();
    let mut left = MOVES_MAX / tasks.max(1);
    let (mut at, mut unmoved) = (0, 0);
    let mut loads = Vec::new();
    while unmoved < tasks && left > 0 {
        let from = best.to[at];
        let mut moved = false;
        for to in (0..problem.processors()).filter(|&to| to != from) {
            if !problem.latency(at, to).is_finite() || left == 0 {
                continue;
            }
            left -= 1;
            let was = std::mem::replace(&mut best.to[at], to);
            let score = problem.score(&best.to, &mut loads);
            if score.is_above(best.score) {
                best.score = score;
                moved = true;
            } else {
                best.to[at] = was;
            }
        }
        unmoved = if moved { 0 } else { unmoved + 1 };
        at = (at + 1) % tasks;
    }
}

/// Depth first, task by task.
struct Search<'a> {
    problem: &'a Problem,
    best: Candidate,
    nodes_left: usize,
    /// The path: a processor for each task so far, and what that makes of the loads.
    to: Vec<usize>,
    loads: Vec<f64>,
    /// Per task: what it and those behind it add at most, whatever was placed before.
    rest: Vec<Score>,
}

// === impl Search ===

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, best: Candidate, nodes_max: usize) -> Self {
        let mut search = Self {
            problem,
            best,
            nodes_left: nodes_max,
            to: Vec::with_capacity(problem.tasks.len()),
            loads: problem.waits.clone(),
            rest: Vec::new(),
        };
        let mut rest = vec![Score::default(); problem.tasks.len() + 1];
        for task in (0..problem.tasks.len()).rev() {
            rest[task] = search.hope(rest[task + 1], task);
        }
        search.rest = rest;
        search
    }

    /// Tries every processor for the next task. False: the bound on nodes was reached.
    fn branch(&mut self, task: usize, score: Score) -> bool {
        if task == self.problem.tasks.len() {
            if score.is_above(self.best.score) {
                self.best.to.clone_from(&self.to);
                self.best.score = score;
            }
            return true;
        }
        if !self.can_win(task, score) {
            return true;
        }
        let mut tried = 0_u64;
        while let Some(processor) = self.next(task, tried) {
            tried |= 1 << processor;
            if self.nodes_left == 0 {
                return false;
            }
            self.nodes_left -= 1;
            let load_us = self.loads[processor];
            let with = self.problem.add(score, task, processor, load_us);
            self.loads[processor] = load_us + self.problem.latency(task, processor);
            self.to.push(processor);
            let is_whole = self.branch(task + 1, with);
            self.to.pop();
            self.loads[processor] = load_us;
            if !is_whole {
                return false;
            }
        }
        true
    }

    /// The processor not yet tried where the task would end first: good candidates early make
    /// the bound bite.
    fn next(&self, task: usize, tried: u64) -> Option<usize> {
        let end_us = |p: usize| self.loads[p] + self.problem.latency(task, p);
        (0..self.problem.processors())
            .filter(|&p| tried & (1 << p) == 0 && end_us(p).is_finite())
            .min_by(|&a, &b| end_us(a).total_cmp(&end_us(b)))
    }

    /// Whether some completion can be above the best. Loads only grow along a path, so no task
    /// that is left gets less than its least expected latency at the loads of now: what it adds
    /// to `score_ael` is at most one over that, and it misses its SLO by no less. Where no
    /// violation is certain, a completion has some and is negative, or has none and is worth
    /// its `score_ael`. First with the loads of the root, which takes no loop.
    fn can_win(&self, task: usize, score: Score) -> bool {
        let sum = |rest: Score| Score {
            slo: score.slo + rest.slo,
            ael: score.ael + rest.ael,
        };
        let best = self.best.score;
        if sum(self.rest[task]).value() < best.value() {
            return false;
        }
        let tasks = task..self.problem.tasks.len();
        let rest = tasks.fold(Score::default(), |rest, task| self.hope(rest, task));
        sum(rest).is_above(best)
    }

    /// The most that a task can add at the loads of now.
    fn hope(&self, rest: Score, task: usize) -> Score {
        let task_of = self.problem.tasks[task];
        let ends =
            (0..self.problem.processors()).map(|p| self.loads[p] + self.problem.latency(task, p));
        let least_us = task_of.age_us + ends.fold(f64::INFINITY, f64::min);
        if self.problem.rule == Rule::Slo && least_us > task_of.slo_us {
            // It may still be one of those without a violation in no candidate; both sums
            // are bounded by what is least.
            return Score {
                slo: rest.slo - least_us / task_of.slo_us,
                ael: rest.ael,
            };
        }
        Score {
            slo: rest.slo,
            ael: rest.ael + 1.0 / least_us,
        }
    }
}
