//! The evaluation phase: the mapping with the highest score (Algorithm 1, lines 3 to 11).

use switchyard_sdk::sort::sort_distinct;

use crate::problem::{Mapping, MappingProblem};
use crate::score::{MappingScore, ScoreRule};

/// Bound of the improvement: number of scored mappings times number of tasks.
const MOVES_MAX: usize = 2_000;

/// Whether the mapping is known to be the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Optimality {
    /// No mapping is better.
    Exact,
    /// Better mappings may exist; AFF's is not better.
    Improved,
}

/// The best mapping: exact up to `exact_max` tasks and `nodes_max` nodes, by branch and bound
/// instead of the paper's enumeration.
///
/// Its score is never below AFF's: AFF's mapping is the first incumbent, and only a mapping with a
/// higher score replaces it.
pub(crate) fn best(
    problem: &MappingProblem,
    exact_max: usize,
    nodes_max: usize,
) -> (Mapping, Optimality) {
    let mut best = problem.mapping(problem.fastest());
    replace(&mut best, problem.mapping(one_by_one(problem)));
    if problem.tasks.len() <= exact_max {
        let mut search = MappingSearch::new(problem, best, nodes_max);
        if search.branch(0, MappingScore::default()) {
            return (search.best, Optimality::Exact);
        }
        best = search.best;
    }
    improve(problem, &mut best);
    (best, Optimality::Improved)
}

fn replace(best: &mut Mapping, other: Mapping) {
    if other.score.is_above(best.score) {
        *best = other;
    }
}

/// The greedy mapping: each task in turn on the processor that raises the score most.
fn one_by_one(problem: &MappingProblem) -> Vec<usize> {
    let mut loads = problem.waits.clone();
    let mut to = Vec::with_capacity(problem.tasks.len());
    let mut so_far = MappingScore::default();
    for task in 0..problem.tasks.len() {
        let mut chosen: Option<(usize, MappingScore)> = None;
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
        loads[processor] = problem.load_after(loads[processor], task, processor);
        to.push(processor);
    }
    to
}

/// Moves single tasks while that raises the score, within [`MOVES_MAX`].
fn improve(problem: &MappingProblem, best: &mut Mapping) {
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

/// Branch and bound, depth first, task by task.
struct MappingSearch<'a> {
    problem: &'a MappingProblem,
    best: Mapping,
    nodes_left: usize,
    /// The path: a processor for each task so far, and the loads that result.
    to: Vec<usize>,
    loads: Vec<f64>,
    /// Per task: the ends on the processors that can run it; kept to save allocations.
    ends: Vec<Vec<ProcessorEnd>>,
    /// Per task: an upper bound of the score that it and the tasks after it add.
    rest: Vec<MappingScore>,
}

/// When a task would end on a processor, and the processor's index.
type ProcessorEnd = (f64, usize);

// === impl MappingSearch ===

impl<'a> MappingSearch<'a> {
    fn new(problem: &'a MappingProblem, best: Mapping, nodes_max: usize) -> Self {
        let mut search = Self {
            problem,
            best,
            nodes_left: nodes_max,
            to: Vec::with_capacity(problem.tasks.len()),
            loads: problem.waits.clone(),
            ends: vec![Vec::new(); problem.tasks.len()],
            rest: Vec::new(),
        };
        let mut rest = vec![MappingScore::default(); problem.tasks.len() + 1];
        for task in (0..problem.tasks.len()).rev() {
            rest[task] = search.hope(rest[task + 1], task);
        }
        search.rest = rest;
        search
    }

    /// Tries every processor for the next task. False: `nodes_max` was reached.
    fn branch(&mut self, task: usize, score: MappingScore) -> bool {
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
        let mut ends = std::mem::take(&mut self.ends[task]);
        self.sort_ends(task, &mut ends);
        let is_whole = ends.iter().all(|&(_, to)| self.place(task, to, score));
        self.ends[task] = ends;
        is_whole
    }

    /// Tries one processor for a task. False: `nodes_max` was reached.
    fn place(&mut self, task: usize, processor: usize, score: MappingScore) -> bool {
        if self.nodes_left == 0 {
            return false;
        }
        self.nodes_left -= 1;
        let load_us = self.loads[processor];
        let with = self.problem.add(score, task, processor, load_us);
        self.loads[processor] = self.problem.load_after(load_us, task, processor);
        self.to.push(processor);
        let is_whole = self.branch(task + 1, with);
        self.to.pop();
        self.loads[processor] = load_us;
        is_whole
    }

    /// Lists the processors that can run a task, the earliest end first: good mappings early prune
    /// more.
    fn sort_ends(&self, task: usize, ends: &mut Vec<ProcessorEnd>) {
        ends.clear();
        let end_us = |processor| self.loads[processor] + self.problem.latency(task, processor);
        let all = (0..self.problem.processors()).map(|processor| (end_us(processor), processor));
        ends.extend(all.filter(|(end_us, _)| end_us.is_finite()));
        sort_distinct(ends, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).is_lt());
    }

    /// Whether a completion can score above the best. Loads only grow along a path, so each
    /// remaining task has at least its least expected latency at the current loads, which bounds
    /// both sums. If no violation is certain, a completion either has one and is negative, or has
    /// none and its value is `score_ael`. The bound at the root's loads comes first, because it
    /// needs no loop.
    fn can_win(&self, task: usize, score: MappingScore) -> bool {
        let sum = |rest: MappingScore| MappingScore {
            slo: score.slo + rest.slo,
            ael: score.ael + rest.ael,
        };
        let best = self.best.score;
        if sum(self.rest[task]).value() < best.value() {
            return false;
        }
        let tasks = task..self.problem.tasks.len();
        let rest = tasks.fold(MappingScore::default(), |rest, task| self.hope(rest, task));
        sum(rest).is_above(best)
    }

    /// Adds the upper bound of a task's score at the current loads.
    fn hope(&self, rest: MappingScore, task: usize) -> MappingScore {
        let task_of = self.problem.tasks[task];
        let ends =
            (0..self.problem.processors()).map(|p| self.loads[p] + self.problem.latency(task, p));
        let least_us = task_of.age_us + ends.fold(f64::INFINITY, f64::min);
        if self.problem.rule == ScoreRule::Slo && least_us > task_of.slo_us {
            // A violation in every completion, by at least this degree.
            return MappingScore {
                slo: rest.slo - least_us / task_of.slo_us,
                ael: rest.ael,
            };
        }
        MappingScore {
            slo: rest.slo,
            ael: rest.ael + 1.0 / least_us,
        }
    }
}
