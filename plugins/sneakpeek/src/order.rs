//! One after the other, each with the model and the worker that are best for it as things stand:
//! Algorithm 1 beyond tau groups (eq. 13, 14 and 15), and the baselines of section 6.1, whose groups
//! are single requests.

use crate::line::Line;
use crate::problem::{Choice, Problem, Schedule};
use crate::settings::Algorithm;

/// Utilities this close are equal: then the earlier end decides.
const EQUAL: f64 = 1e-9;

/// Groups scheduled in one window: what is behind them is decided when it is its turn. Bounds what
/// thousands of single requests may cost.
const PLACED_MAX: usize = 512;

/// What an operator reads of a schedule that was made one request at a time.
pub(crate) fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::LoEdf => "lo-edf",
        Algorithm::MaxAccEdf => "max-acc-edf",
        _ => "lo-priority",
    }
}

/// The schedule. `until_us` is when what starts no longer matters: it will be decided anew.
pub(crate) fn one_by_one(
    problem: &Problem<'_>,
    lines: &[Line],
    algorithm: Algorithm,
    until_us: u64,
) -> Schedule {
    let mut lines = lines.to_vec();
    let mut schedule = Schedule::default();
    // A group that is answered from evidence takes no line; all others can stop at full ones.
    let answers = (0..problem.groups.len()).any(|group| problem.sneakpeek(group).is_some());
    let decides_all = algorithm.groups() || answers;
    for group in ordered(problem, algorithm) {
        if !decides_all && lines.iter().all(|line| line.free_us > until_us) {
            break;
        }
        if let Some((utility, choice, after)) = best(problem, group, &lines, algorithm) {
            schedule.utility += utility;
            schedule.choices.push(choice);
            if let Some((line, after)) = choice.line.zip(after) {
                lines[line] = after;
            }
        }
    }
    schedule
}

/// Groups in the order in which they are placed.
fn ordered(problem: &Problem<'_>, algorithm: Algorithm) -> Vec<usize> {
    let groups = problem.groups;
    let mut order: Vec<usize> = (0..groups.len()).collect();
    match algorithm {
        Algorithm::LoEdf | Algorithm::MaxAccEdf => {
            order.sort_by_key(|&group| (groups[group].first_deadline_us, group));
        }
        _ => order.sort_by(|&a, &b| {
            let by_priority = groups[b].priority.total_cmp(&groups[a].priority);
            by_priority.then(a.cmp(&b))
        }),
    }
    order.truncate(PLACED_MAX);
    order
}

/// The candidate of highest utility for a group that goes next. The mean over the group, of
/// which the paper speaks, is highest where the sum is. None when no worker can run it.
fn best(
    problem: &Problem<'_>,
    group: usize,
    lines: &[Line],
    algorithm: Algorithm,
) -> Option<(f64, Choice, Option<Line>)> {
    let placed = lines.iter().enumerate().flat_map(|(at, line)| {
        models(problem, group, lines, algorithm).filter_map(move |model| {
            let (utility, after) = problem.place(group, model, line)?;
            let line = Some(at);
            Some((utility, Choice { group, model, line }, Some(after)))
        })
    });
    // "SneakPeek is never the most accurate model available" (section 6.3.1).
    let selects = algorithm != Algorithm::MaxAccEdf;
    let answered = problem.answer(group).zip(problem.sneakpeek(group));
    let answered = answered.filter(|_| selects).map(|(utility, model)| {
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

/// The models to choose from: all that run, or the most accurate one that runs on any line.
fn models(
    problem: &Problem<'_>,
    group: usize,
    lines: &[Line],
    algorithm: Algorithm,
) -> std::ops::Range<usize> {
    let found = &problem.groups[group];
    let runs = problem.apps[found.app].runs();
    if algorithm != Algorithm::MaxAccEdf {
        return 0..runs;
    }
    let can_run = |model: &usize| {
        let placed = |line| problem.place(group, *model, line);
        lines.iter().any(|line| placed(line).is_some())
    };
    let accuracy = |model: usize| problem.sums[found.sums + model];
    let most = (0..runs).filter(can_run).reduce(|best, next| {
        if accuracy(next) > accuracy(best) {
            next
        } else {
            best
        }
    });
    most.map_or(0..0, |model| model..model + 1)
}
