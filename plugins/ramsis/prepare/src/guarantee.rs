//! The guarantee of a table (section 5.1).

use crate::problem::DecisionProcess;
use crate::solve::Solution;

/// Expectations over the stationary distribution, weighted by the requests of each batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// Accuracy per request in time, 0 to 1.
    pub accuracy: f64,
    /// Share of late requests, 0 to 1; if the earliest deadline is missed, the whole batch counts.
    pub violation_rate: f64,
    /// Accuracy per request, 0 to 1; late requests count as wrong.
    pub accuracy_of_all: f64,
    /// Accuracy per decision, 0 if the earliest deadline is missed: the paper's objective.
    pub accuracy_of_decisions: f64,
    /// Share of decisions taken with more than N requests in the queue.
    pub full: f64,
}

// === impl Guarantee ===

impl Guarantee {
    pub(crate) fn new(problem: &DecisionProcess, solution: &Solution) -> Self {
        let (mut served, mut in_time, mut right, mut decisions) = (0.0, 0.0, 0.0, 0.0);
        for (&chance, &c) in solution.stationary.iter().zip(&solution.policy) {
            let choice = problem.choice(c);
            let requests = chance * f64::from(choice.action.batch);
            served += requests;
            right += requests * choice.accuracy;
            decisions += chance * choice.accuracy;
            if choice.in_time {
                in_time += requests;
            }
        }
        // Beyond capacity almost no request is in time, and such ratios are meaningless.
        let share = |part: f64, of: f64| match of > served * 1e-12 {
            true => (part / of).min(1.0),
            false => 0.0,
        };
        Self {
            accuracy: share(right, in_time),
            violation_rate: 1.0 - share(in_time, served),
            accuracy_of_all: share(right, served),
            accuracy_of_decisions: decisions,
            full: solution.stationary[problem.space.full()],
        }
    }
}
