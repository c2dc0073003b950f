//! Groups one after the other, each with the model and worker that are best for it alone: Algorithm
//! 1 beyond tau groups (eq. 13, 14 and 15), and the baselines of section 6.1, whose groups are
//! single requests.

use switchyard_sdk::AppId;

use crate::problem::{Assignment, Schedule, SchedulingProblem};
use crate::settings::SneakPeekAlgorithm;
use crate::timeline::WorkerTimeline;

/// Utilities this close are equal; then the earlier end decides.
const EQUAL: f64 = 1e-9;

/// Largest number of groups scheduled in one window, which bounds its time with thousands of single
/// requests. Later groups wait for a later window.
const PLACED_MAX: usize = 512;

/// The reason of a baseline's launches.
pub(crate) fn name(algorithm: SneakPeekAlgorithm) -> &'static str {
    match algorithm {
        SneakPeekAlgorithm::LoEdf => "lo-edf",
        SneakPeekAlgorithm::MaxAccEdf => "max-acc-edf",
        _ => "lo-priority",
    }
}

/// The last run on a timeline, which adjacent requests with the same model join.
#[derive(Clone, Copy, Debug, Default)]
struct LastRun {
    runs: Option<(AppId, usize)>,
    /// The timeline was full before another run began: nothing that starts now is still open.
    is_closed: bool,
}

impl LastRun {
    fn follow(&mut self, runs: (AppId, usize), is_full: bool) {
        self.is_closed |= is_full && self.runs != Some(runs);
        self.runs = Some(runs);
    }
}

/// The schedule. Batches that start after `until_us` do not matter: a later window decides them.
pub(crate) fn one_by_one(
    problem: &SchedulingProblem<'_>,
    timelines: &[WorkerTimeline],
    algorithm: SneakPeekAlgorithm,
    until_us: u64,
) -> Schedule {
    let mut timelines = timelines.to_vec();
    let mut schedule = Schedule::default();
    // Answers from evidence need no worker; without them the loop can stop when all workers are
    // full.
    let answers = (0..problem.groups.len()).any(|group| problem.sneakpeek(group).is_some());
    let decides_all = algorithm.groups() || answers;
    let mut lasts: Vec<LastRun> = vec![LastRun::default(); timelines.len()];
    for group in ordered(problem, algorithm) {
        let is_full = |(timeline, last): (&WorkerTimeline, &LastRun)| {
            timeline.free_us > until_us && (!problem.joins || last.is_closed)
        };
        if !decides_all && timelines.iter().zip(&lasts).all(is_full) {
            break;
        }
        if let Some((utility, choice, after)) = best(problem, group, &timelines, algorithm) {
            schedule.utility += utility;
            schedule.choices.push(choice);
            if let Some((timeline, after)) = choice.timeline.zip(after) {
                let runs = (problem.groups[group].app, choice.model);
                lasts[timeline].follow(runs, timelines[timeline].free_us > until_us);
                timelines[timeline] = after;
            }
        }
    }
    schedule
}

/// Groups in the order in which they are placed.
fn ordered(problem: &SchedulingProblem<'_>, algorithm: SneakPeekAlgorithm) -> Vec<usize> {
    let groups = problem.groups;
    let mut order: Vec<usize> = (0..groups.len()).collect();
    match algorithm {
        SneakPeekAlgorithm::LoEdf | SneakPeekAlgorithm::MaxAccEdf => {
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

/// The assignment of highest utility for the next group (the paper's mean over the group is highest
/// where the sum is). None if no worker can run it.
fn best(
    problem: &SchedulingProblem<'_>,
    group: usize,
    timelines: &[WorkerTimeline],
    algorithm: SneakPeekAlgorithm,
) -> Option<(f64, Assignment, Option<WorkerTimeline>)> {
    let placed = timelines.iter().enumerate().flat_map(|(at, timeline)| {
        models(problem, group, timelines, algorithm).filter_map(move |model| {
            let (utility, after) = problem.place(group, model, timeline)?;
            let timeline = Some(at);
            Some((
                utility,
                Assignment {
                    group,
                    model,
                    timeline,
                },
                Some(after),
            ))
        })
    });
    // "SneakPeek is never the most accurate model available" (section 6.3.1).
    let selects = algorithm != SneakPeekAlgorithm::MaxAccEdf;
    let answered = problem.answer(group).zip(problem.sneakpeek(group));
    let answered = answered.filter(|_| selects).map(|(utility, model)| {
        let timeline = None;
        (
            utility,
            Assignment {
                group,
                model,
                timeline,
            },
            None,
        )
    });
    placed.chain(answered).reduce(|best, next| {
        let end_us = |after: &Option<WorkerTimeline>| {
            after.map_or(problem.now_us, |timeline| timeline.free_us)
        };
        let equal = (next.0 - best.0).abs() <= EQUAL;
        let better = if equal {
            end_us(&next.2) < end_us(&best.2)
        } else {
            next.0 > best.0
        };
        if better { next } else { best }
    })
}

/// The candidates of a group: all that run, or the most accurate that runs on any worker.
fn models(
    problem: &SchedulingProblem<'_>,
    group: usize,
    timelines: &[WorkerTimeline],
    algorithm: SneakPeekAlgorithm,
) -> std::ops::Range<usize> {
    let found = &problem.groups[group];
    let runs = problem.apps[found.app.index()].runs();
    if algorithm != SneakPeekAlgorithm::MaxAccEdf {
        return 0..runs;
    }
    let can_run = |model: &usize| {
        let placed = |timeline| problem.place(group, *model, timeline);
        timelines.iter().any(|timeline| placed(timeline).is_some())
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
