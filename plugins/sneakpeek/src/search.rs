//! Up to tau groups: exact over orders, models and workers (Algorithm 1), by depth-first branch and
//! bound.
//!
//! A schedule is a set of groups answered from evidence and, per worker, an order of other groups.
//! The search visits each schedule once: first the answered groups, then worker after worker.

use crate::problem::{Assignment, Schedule, SchedulingProblem};
use crate::timeline::WorkerTimeline;

/// A better schedule is better by more than rounding.
const EPSILON: f64 = 1e-9;

/// The schedule with the highest sum of utilities (eq. 3 and 15); `first` if none is better. True
/// if the search was complete; false if it stopped at `nodes_max` nodes.
pub(crate) fn exact(
    problem: &SchedulingProblem<'_>,
    timelines: &[WorkerTimeline],
    first: Schedule,
    nodes_max: u32,
) -> (Schedule, bool) {
    let groups = problem.groups.len();
    let mut search = ScheduleSearch {
        problem,
        timelines,
        later: later(problem, timelines),
        best: first,
        path: Vec::with_capacity(groups),
        options: vec![Vec::new(); groups],
        nodes_left: nodes_max,
    };
    search.answer(0, 0, 0.0);
    (search.best, search.nodes_left > 0)
}

struct ScheduleSearch<'a> {
    problem: &'a SchedulingProblem<'a>,
    timelines: &'a [WorkerTimeline],
    /// Per timeline and group, the highest utility of the group on this or a later timeline while
    /// those are empty. An upper bound: timelines only fill up, and a missing variant is loaded by
    /// some group.
    later: Vec<Vec<f64>>,
    best: Schedule,
    path: Vec<Assignment>,
    /// Per depth, the next placements; kept to save allocations.
    options: Vec<Vec<Placement>>,
    nodes_left: u32,
}

/// A group placed next on the current timeline.
#[derive(Clone, Copy)]
struct Placement {
    utility: f64,
    after: WorkerTimeline,
    choice: Assignment,
}

/// Groups that are not placed, as bits.
type GroupSet = u32;

// === impl ScheduleSearch ===

impl ScheduleSearch<'_> {
    /// Decides which groups, from `from` on, are answered from evidence.
    fn answer(&mut self, from: usize, rest: GroupSet, utility: f64) {
        if from == self.problem.groups.len() {
            self.fill(0, rest, utility);
            return;
        }
        let can_run = self.later[0][from] > f64::NEG_INFINITY;
        // A group that no worker can run does not keep the others from being placed.
        if can_run || self.problem.sneakpeek(from).is_none() {
            let placed = if can_run { rest | 1 << from } else { rest };
            self.answer(from + 1, placed, utility);
        }
        let answered = self.problem.answer(from).zip(self.problem.sneakpeek(from));
        if let Some((worth, model)) = answered {
            self.path.push(Assignment {
                group: from,
                model,
                timeline: None,
            });
            self.answer(from + 1, rest, utility + worth);
            self.path.pop();
        }
    }

    /// Fills the timelines from `at` on, which are empty, with the rest.
    fn fill(&mut self, at: usize, rest: GroupSet, utility: f64) {
        if rest == 0 {
            self.keep(utility);
        } else if at < self.timelines.len() {
            let is_like = |before: usize| self.timelines[at].is_like(&self.timelines[before]);
            // The equal worker before it stayed empty, so these schedules were visited there.
            if at > 0 && self.is_unused(at - 1) && is_like(at - 1) {
                self.fill(at + 1, rest, utility);
            } else {
                self.extend(at, self.timelines[at], rest, utility);
            }
        }
    }

    /// Places each group of the rest next on timeline `at`, or leaves the timeline as it is.
    fn extend(&mut self, at: usize, timeline: WorkerTimeline, rest: GroupSet, utility: f64) {
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
        let bound = utility + self.place_all(at, &timeline, rest, &mut options);
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

    /// Collects every placement of the rest on a timeline, best first, and returns an upper bound
    /// of the utility of the rest.
    fn place_all(
        &self,
        at: usize,
        timeline: &WorkerTimeline,
        rest: GroupSet,
        options: &mut Vec<Placement>,
    ) -> f64 {
        options.clear();
        let mut bound = 0.0;
        for group in (0..self.problem.groups.len()).filter(|group| rest & (1 << group) != 0) {
            let before = options.len();
            let models = self.problem.apps[self.problem.groups[group].app.index()].runs();
            for model in 0..models {
                if let Some((utility, after)) = self.problem.place(group, model, timeline) {
                    let timeline = Some(at);
                    let choice = Assignment {
                        group,
                        model,
                        timeline,
                    };
                    options.push(Placement {
                        utility,
                        after,
                        choice,
                    });
                }
            }
            let here = options[before..].iter().map(|placing| placing.utility);
            bound += here.fold(self.later[at + 1][group], f64::max);
            self.drop_dominated(timeline, before, options);
        }
        options.sort_by(|a, b| b.utility.total_cmp(&a.utility));
        bound
    }

    /// Drops a group's placements that have no more utility than another and end later. Only among
    /// resident variants: a load may help or hurt a later group.
    fn drop_dominated(&self, timeline: &WorkerTimeline, from: usize, options: &mut Vec<Placement>) {
        let mut at = from;
        while at < options.len() {
            let this = options[at];
            let better = |other: &Placement| {
                other.utility >= this.utility
                    && other.after.free_us < this.after.free_us
                    && self.variant_held(timeline, other.choice)
            };
            let is_there = self.variant_held(timeline, this.choice);
            if is_there && options[from..].iter().any(better) {
                options.remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn variant_held(&self, timeline: &WorkerTimeline, choice: Assignment) -> bool {
        let app = &self.problem.apps[self.problem.groups[choice.group].app.index()];
        app.models[choice.model]
            .run
            .is_some_and(|(variant, _)| timeline.holds(variant))
    }

    fn is_unused(&self, timeline: usize) -> bool {
        self.path
            .iter()
            .all(|choice| choice.timeline != Some(timeline))
    }

    fn keep(&mut self, utility: f64) {
        if utility > self.best.utility + EPSILON {
            self.best.utility = utility;
            self.best.choices.clone_from(&self.path);
        }
    }
}

/// See [`ScheduleSearch::later`]. The row past the last timeline is minus infinity.
fn later(problem: &SchedulingProblem<'_>, timelines: &[WorkerTimeline]) -> Vec<Vec<f64>> {
    let groups = problem.groups.len();
    let mut rows = vec![vec![f64::NEG_INFINITY; groups]; timelines.len() + 1];
    for at in (0..timelines.len()).rev() {
        let row = (0..groups).map(|group| {
            let models = problem.apps[problem.groups[group].app.index()].runs();
            let here = (0..models).filter_map(|model| problem.place(group, model, &timelines[at]));
            here.fold(rows[at + 1][group], |best, (utility, _)| best.max(utility))
        });
        rows[at] = row.collect();
    }
    rows
}
