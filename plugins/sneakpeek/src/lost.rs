//! Requests that are worth nothing any more, however they are answered. The paper schedules
//! every request of a window once; a live server must also end those it is too late for,
//! without holding up the others.

use switchyard_sdk::PlanBuilder;

use crate::job::Job;
use crate::line::Line;
use crate::model::AppModels;

/// Answers from evidence where that is possible: it costs no worker any time. Returns how
/// many.
pub(crate) fn answer(lost: &mut Vec<Job>, apps: &[AppModels], plan: &mut PlanBuilder) -> usize {
    let before = lost.len();
    lost.retain(|job| {
        let sneakpeek = apps[job.app].sneakpeek();
        let answers = job.has_evidence && sneakpeek.is_some_and(|m| job.models & (1 << m) != 0);
        if answers {
            plan.answer_because(job.id, "lost");
        }
        !answers
    });
    before - lost.len()
}

/// Runs the oldest that a worker can run, with others of its app, on the model that is done
/// first. Returns how many.
pub(crate) fn run(
    lost: &mut Vec<Job>,
    apps: &[AppModels],
    line: &Line,
    plan: &mut PlanBuilder,
) -> usize {
    let runnable = lost
        .iter()
        .find_map(|job| Some((job, soonest(job, &apps[job.app], line)?)));
    let Some((first, model)) = runnable else {
        return 0;
    };
    let (app, candidate) = (first.app, &apps[first.app].models[model]);
    let Some(((variant, exit), cost)) = candidate.run.zip(line.cost(candidate)) else {
        return 0;
    };
    let joins = |job: &Job| job.app == app && job.models & (1 << model) != 0;
    let batch: Vec<_> = lost
        .iter()
        .filter(|job| joins(job))
        .map(|job| job.id)
        .collect();
    let batch = &batch[..batch.len().min(cost.latencies_us.len())];
    let run = plan.run(line.worker, variant).exit(exit);
    let taken = run.because("lost").requests(batch.iter().copied());
    let taken = &batch[..taken];
    lost.retain(|job| !taken.contains(&job.id));
    taken.len()
}

/// The model that would answer a job alone first, its load included.
fn soonest(job: &Job, app: &AppModels, line: &Line) -> Option<usize> {
    let runs = (0..app.runs()).filter(|model| job.models & (1 << model) != 0);
    let taking = runs.filter_map(|model| {
        let (variant, _) = app.models[model].run?;
        let cost = line.cost(&app.models[model])?;
        let load_us = if line.holds(variant) { 0 } else { cost.load_us };
        Some((load_us + cost.latencies_us.first()?, model))
    });
    taking.min().map(|(_, model)| model)
}
