//! From a schedule to a plan. Only batches that start now are committed; other requests stay
//! pending, so that evidence and arrivals can still change their groups.

use switchyard_sdk::{PlanBuilder, Reason};

use crate::problem::{Assignment, Schedule, SchedulingProblem};
use crate::timeline::WorkerTimeline;

/// Writes a schedule's answers and the batches that start until `until_us` into a plan.
pub(crate) fn commit(
    problem: &SchedulingProblem<'_>,
    timelines: &[WorkerTimeline],
    schedule: &Schedule,
    until_us: u64,
    how: &str,
    plan: &mut PlanBuilder,
) {
    let mut timelines = timelines.to_vec();
    if problem.joins {
        run_joined(problem, schedule, &mut timelines, until_us, how, plan);
        return;
    }
    for choice in &schedule.choices {
        match choice.timeline {
            None => {
                let jobs = problem.groups[choice.group].jobs.clone();
                let reason = reason(problem, choice, "short-circuit");
                problem.jobs[jobs]
                    .iter()
                    .for_each(|job| plan.answer_because(job.id, reason.clone()));
            }
            Some(timeline) => {
                let reason = reason(problem, choice, how);
                run(
                    problem,
                    choice,
                    &mut timelines[timeline],
                    until_us,
                    &reason,
                    plan,
                );
            }
        }
    }
}

/// Launches the batches of one group that start until `until_us`.
fn run(
    problem: &SchedulingProblem<'_>,
    choice: &Assignment,
    timeline: &mut WorkerTimeline,
    until_us: u64,
    reason: &Reason,
    plan: &mut PlanBuilder,
) {
    let candidate = &problem.apps[problem.groups[choice.group].app.index()].models[choice.model];
    let Some(((variant, exit), cost)) = candidate.run.zip(timeline.cost(candidate)) else {
        return;
    };
    let latencies_us = &cost.latencies_us;
    for batch in problem.batches(choice.group, latencies_us.len()) {
        if timeline.free_us > until_us {
            break;
        }
        let jobs = &problem.jobs[batch];
        let run = plan
            .run(timeline.worker, variant)
            .exit(exit)
            .because(reason.clone());
        if run.requests(jobs.iter().map(|job| job.id)) == 0 {
            // The worker's queue is full: no further batch of this plan goes there.
            timeline.free_us = u64::MAX;
            break;
        }
        let load_us = if problem.charge_swap { cost.load_us } else { 0 };
        timeline.load(variant, candidate.memory_bytes, load_us);
        timeline.free_us = timeline
            .free_us
            .saturating_add(latencies_us[jobs.len() - 1]);
    }
}

/// As [`commit`]; adjacent requests on a timeline with the same model are one batch.
fn run_joined(
    problem: &SchedulingProblem<'_>,
    schedule: &Schedule,
    timelines: &mut [WorkerTimeline],
    until_us: u64,
    how: &str,
    plan: &mut PlanBuilder,
) {
    for (choice, jobs) in joined(problem, schedule, timelines) {
        let Some(timeline) = choice.timeline else {
            let reason = reason(problem, &choice, "short-circuit");
            let ids = jobs.iter().map(|&job| problem.jobs[job].id);
            ids.for_each(|id| plan.answer_because(id, reason.clone()));
            continue;
        };
        let timeline = &mut timelines[timeline];
        let candidate =
            &problem.apps[problem.groups[choice.group].app.index()].models[choice.model];
        let Some(((variant, exit), cost)) = candidate.run.zip(timeline.cost(candidate)) else {
            continue;
        };
        if timeline.free_us > until_us {
            continue;
        }
        let run = plan.run(timeline.worker, variant).exit(exit);
        let run = run.because(reason(problem, &choice, how));
        if run.requests(jobs.iter().map(|&job| problem.jobs[job].id)) == 0 {
            timeline.free_us = u64::MAX;
            continue;
        }
        let load_us = if problem.charge_swap { cost.load_us } else { 0 };
        timeline.load(variant, candidate.memory_bytes, load_us);
        let taken_us = cost.latencies_us[jobs.len() - 1];
        timeline.free_us = timeline.free_us.saturating_add(taken_us);
    }
}

/// The batches of a schedule of single requests, each with its first choice and its jobs.
fn joined(
    problem: &SchedulingProblem<'_>,
    schedule: &Schedule,
    timelines: &[WorkerTimeline],
) -> Vec<(Assignment, Vec<usize>)> {
    let mut batches: Vec<(Assignment, Vec<usize>)> = Vec::new();
    let mut last: Vec<Option<usize>> = vec![None; timelines.len()];
    for choice in &schedule.choices {
        let group = &problem.groups[choice.group];
        let open = choice.timeline.and_then(|timeline| {
            let batch = last[timeline]?;
            let (first, jobs) = &batches[batch];
            let candidate = &problem.apps[group.app.index()].models[choice.model];
            let largest = timelines[timeline].cost(candidate)?.latencies_us.len();
            let alike = problem.groups[first.group].app == group.app && first.model == choice.model;
            (alike && jobs.len() + group.jobs.len() <= largest).then_some(batch)
        });
        if let Some(batch) = open {
            batches[batch].1.extend(group.jobs.clone());
            continue;
        }
        if let Some(timeline) = choice.timeline {
            last[timeline] = Some(batches.len());
        }
        batches.push((*choice, group.jobs.clone().collect()));
    }
    batches
}

/// The reason of a batch or answer: how the schedule was found, and its group.
fn reason(problem: &SchedulingProblem<'_>, choice: &Assignment, how: &str) -> Reason {
    let group = &problem.groups[choice.group];
    let reason = Reason::new(how)
        .with("groups", problem.groups.len())
        .with("requests", group.jobs.len());
    match group.label {
        Some(label) => reason.with("class", label),
        None => reason,
    }
}
