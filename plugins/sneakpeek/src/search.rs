//! Up to tau groups: exact over orders, models and workers (Algorithm 1), by depth-first
//! search with bounds.
//!
//! A schedule is a set of groups answered from evidence and, for each worker, an order of
//! the others. Each is visited once: first the answered groups, then the workers one after
//! the other.

use crate::line::Line;
use crate::problem::{Choice, Problem, Schedule};

/// A better schedule must be better by more than rounding.
const EPSILON: f64 = 1e-9;

/// The schedule of the highest sum of utilities (eq. 3 and 15), `first` if nothing is better.
/// Stops at `nodes_max` nodes with the best so far; the second value says whether it did not.
pub(crate) fn exact(
    problem: &Problem<'_>,
    lines: &[Line],
    first: Schedule,
    nodes_max: u32,
) -> (Schedule, bool) {
    let groups = problem.groups.len();
    let mut search = Search {
        problem,
        lines,
        later: later(problem, lines),
        best: first,
        path: Vec::with_capacity(groups),
        options: vec![Vec::new(); groups],
        nodes_left: nodes_max,
    };
    search.answer(0, 0, 0.0);
    (search.best, search.nodes_left > 0)
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    lines: &'a [Line],
    /// Per line and group, the most that the group is worth on this line or a later one.
    /// Lines only fill up and a variant that is missing must be loaded by somebody, so the
    /// untouched lines give a bound.
    later: Vec<Vec<f64>>,
    best: Schedule,
    path: Vec<Choice>,
    /// Per depth, what can come next; kept to save allocations.
    options: Vec<Vec<Placing>>,
    nodes_left: u32,
}

/// A group placed next on the current line.
#[derive(Clone, Copy)]
struct Placing {
    utility: f64,
    after: Line,
    choice: Choice,
}

/// Groups not placed yet, as bits.
type Rest = u32;

// === impl Search ===

impl Search<'_> {
    /// Decides from group `from` on which groups are answered from evidence.
    fn answer(&mut self, from: usize, rest: Rest, utility: f64) {
        if from == self.problem.groups.len() {
            self.fill(0, rest, utility);
            return;
        }
        let can_run = self.later[0][from] > f64::NEG_INFINITY;
        // A group that nothing can be done for does not keep the others from being placed.
        if can_run || self.problem.sneakpeek(from).is_none() {
            let placed = if can_run { rest | 1 << from } else { rest };
            self.answer(from + 1, placed, utility);
        }
        let answered = self.problem.answer(from).zip(self.problem.sneakpeek(from));
        if let Some((worth, model)) = answered {
            self.path.push(Choice {
                group: from,
                model,
                line: None,
            });
            self.answer(from + 1, rest, utility + worth);
            self.path.pop();
        }
    }

    /// Fills the lines from `at` on, which are untouched, with the rest.
    fn fill(&mut self, at: usize, rest: Rest, utility: f64) {
        if rest == 0 {
            self.keep(utility);
        } else if at < self.lines.len() {
            let is_like = |before: usize| self.lines[at].is_like(&self.lines[before]);
            // What could go here was tried on the equal worker before it that stayed empty.
            if at > 0 && self.is_unused(at - 1) && is_like(at - 1) {
                self.fill(at + 1, rest, utility);
            } else {
                self.extend(at, self.lines[at], rest, utility);
            }
        }
    }

    /// Places each of the rest next on line `at`, or leaves the line as it is.
    fn extend(&mut self, at: usize, line: Line, rest: Rest, utility: f64) {
        if rest == 0 {
            self.keep(utility);
            return;
        }
        if self.nodes_left == 0 {
            return;
        }
        self.nodes_left -= 1;
        let depth = self.path.len();
        let mut options = std::mem::take(&mut self.options[depth]);
        let bound = utility + self.place_all(at, &line, rest, &mut options);
        if bound > self.best.utility + EPSILON {
            for placing in &options {
                self.path.push(placing.choice);
                let rest = rest & !(1 << placing.choice.group);
                self.extend(at, placing.after, rest, utility + placing.utility);
                self.path.pop();
            }
            self.fill(at + 1, rest, utility);
        }
        self.options[depth] = options;
    }

    /// Collects every placing of the rest on a line, best first, and returns a bound of what
    /// the rest is worth from here on.
    fn place_all(&self, at: usize, line: &Line, rest: Rest, options: &mut Vec<Placing>) -> f64 {
        options.clear();
        let mut bound = 0.0;
        for group in (0..self.problem.groups.len()).filter(|group| rest & (1 << group) != 0) {
            let before = options.len();
            let models = self.problem.apps[self.problem.groups[group].app].runs();
            for model in 0..models {
                if let Some((utility, after)) = self.problem.place(group, model, line) {
                    let line = Some(at);
                    let choice = Choice { group, model, line };
                    options.push(Placing {
                        utility,
                        after,
                        choice,
                    });
                }
            }
            let here = options[before..].iter().map(|placing| placing.utility);
            bound += here.fold(self.later[at + 1][group], f64::max);
            self.drop_dominated(line, before, options);
        }
        options.sort_by(|a, b| b.utility.total_cmp(&a.utility));
        bound
    }

    /// Drops a group's placings that are worth no more than another of them and end later.
    /// Only among variants that are there already: a load may serve or hurt a later group.
    fn drop_dominated(&self, line: &Line, from: usize, options: &mut Vec<Placing>) {
        let mut at = from;
        while at < options.len() {
            let this = options[at];
            let better = |other: &Placing| {
                other.utility >= this.utility
                    && other.after.free_us < this.after.free_us
                    && self.variant_held(line, other.choice)
            };
            let is_there = self.variant_held(line, this.choice);
            if is_there && options[from..].iter().any(better) {
                options.remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn variant_held(&self, line: &Line, choice: Choice) -> bool {
        let app = &self.problem.apps[self.problem.groups[choice.group].app];
        app.models[choice.model]
            .run
            .is_some_and(|(variant, _)| line.holds(variant))
    }

    fn is_unused(&self, line: usize) -> bool {
        self.path.iter().all(|choice| choice.line != Some(line))
    }

    fn keep(&mut self, utility: f64) {
        if utility > self.best.utility + EPSILON {
            self.best.utility = utility;
            self.best.choices.clone_from(&self.path);
        }
    }
}

/// See [`Search::later`]. The row past the last line says that there is none.
fn later(problem: &Problem<'_>, lines: &[Line]) -> Vec<Vec<f64>> {
    let groups = problem.groups.len();
    let mut rows = vec![vec![f64::NEG_INFINITY; groups]; lines.len() + 1];
    for at in (0..lines.len()).rev() {
        let row = (0..groups).map(|group| {
            let models = problem.apps[problem.groups[group].app].runs();
            let here = (0..models).filter_map(|model| problem.place(group, model, &lines[at]));
            here.fold(rows[at + 1][group], |best, (utility, _)| best.max(utility))
        });
        rows[at] = row.collect();
    }
    rows
}
