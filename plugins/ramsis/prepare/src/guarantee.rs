//! What a policy promises (section 5.1).

use crate::problem::Problem;
use crate::solve::Solution;

/// What a policy promises on the stationary distribution, weighted by the requests of each batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// Accuracy per request in time, 0 to 1.
    pub accuracy: f64,
    /// Share of requests that are late, 0 to 1: all of a batch when its earliest deadline is
    /// missed.
    pub violation_rate: f64,
    /// Accuracy per request, late ones counted as wrong, 0 to 1.
    pub accuracy_of_all: f64,
    /// Accuracy per decision, 0 where the earliest deadline is missed: what the paper's objective
    /// makes large.
    pub accuracy_of_decisions: f64,
    /// Share of decisions taken with more than N requests in the queue.
    pub full: f64,
}

// === impl Guarantee ===

impl Guarantee {
    pub(crate) fn new(problem: &Problem, solution: &Solution) -> Self {
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
        // Beyond capacity next to nothing is in time; a ratio of two such numbers says nothing.
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
