//! Beyond tau groups: in order of mean priority, each with the model and the worker that are
//! best for it as things stand (Algorithm 1; eq. 13, 14 and 15).

use crate::line::Line;
use crate::problem::{Choice, Problem, Schedule};

/// Utilities this close are equal: then the earlier end decides.
const EQUAL: f64 = 1e-9;

/// The locally optimal schedule.
pub(crate) fn by_priority(problem: &Problem<'_>, lines: &[Line]) -> Schedule {
    let mut lines = lines.to_vec();
    let mut order: Vec<usize> = (0..problem.groups.len()).collect();
    let priority = |group: usize| problem.groups[group].priority;
    order.sort_by(|&a, &b| priority(b).total_cmp(&priority(a)).then(a.cmp(&b)));
    let mut schedule = Schedule::default();
    for group in order {
        if let Some((utility, choice, after)) = best(problem, group, &lines) {
            schedule.utility += utility;
            schedule.choices.push(choice);
            if let Some((line, after)) = choice.line.zip(after) {
                lines[line] = after;
            }
        }
    }
    schedule
}

/// The candidate of highest utility for a group that goes next. The mean over the group, of
/// which the paper speaks, is highest where the sum is. None when no worker can run it.
fn best(
    problem: &Problem<'_>,
    group: usize,
    lines: &[Line],
) -> Option<(f64, Choice, Option<Line>)> {
    let models = problem.apps[problem.groups[group].app].runs();
    let placed = lines.iter().enumerate().flat_map(|(at, line)| {
        (0..models).filter_map(move |model| {
            let (utility, after) = problem.place(group, model, line)?;
            let line = Some(at);
            Some((utility, Choice { group, model, line }, Some(after)))
        })
    });
    let answered = problem.answer(group).zip(problem.sneakpeek(group));
    let answered = answered.map(|(utility, model)| {
        let line = None;
        (utility, Choice { group, model, line }, None)
    });
    placed.chain(answered).reduce(|best, next| {
        let end_us = |after: &Option<Line>| after.map_or(problem.now_us, |line| line.free_us);
        let equal = (next.0 - best.0).abs() <= EQUAL;
        let better = if equal {
            end_us(&next.2) < end_us(&best.2)
        } else {
            next.0 > best.0
        };
        if better { next } else { best }
    })
}
