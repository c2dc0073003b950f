//! Requests of utility 0 with every candidate. The paper schedules every request of a window once;
//! a live server must end these without delaying others.

use switchyard_sdk::PlanBuilder;

use crate::job::Job;
use crate::model::AppModels;
use crate::timeline::WorkerTimeline;

/// Answers requests from evidence if possible, which takes no worker's time. Returns their number.
pub(crate) fn answer(lost: &mut Vec<Job>, apps: &[AppModels], plan: &mut PlanBuilder) -> usize {
    let before = lost.len();
    lost.retain(|job| {
        let sneakpeek = apps[job.app.index()].sneakpeek();
        let answers = job.has_evidence && sneakpeek.is_some_and(|m| job.models & (1 << m) != 0);
        if answers {
            plan.answer_because(job.id, "lost");
        }
        !answers
    });
    before - lost.len()
}

/// Launches the oldest request that a worker can run, with others of its app, on the candidate that
/// ends first. Returns the number of requests.
pub(crate) fn run(
    lost: &mut Vec<Job>,
    apps: &[AppModels],
    timeline: &WorkerTimeline,
    plan: &mut PlanBuilder,
) -> usize {
    let runnable = lost
        .iter()
        .find_map(|job| Some((job, soonest(job, &apps[job.app.index()], timeline)?)));
    let Some((first, model)) = runnable else {
        return 0;
    };
    let (app, candidate) = (first.app, &apps[first.app.index()].models[model]);
    let Some(((variant, exit), cost)) = candidate.run.zip(timeline.cost(candidate)) else {
        return 0;
    };
    let joins = |job: &Job| job.app == app && job.models & (1 << model) != 0;
    let batch: Vec<_> = lost
        .iter()
        .filter(|job| joins(job))
        .map(|job| job.id)
        .collect();
    let batch = &batch[..batch.len().min(cost.latencies_us.len())];
    let run = plan.run(timeline.worker, variant).exit(exit);
    let taken = run.because("lost").requests(batch.iter().copied());
    let taken = &batch[..taken];
    lost.retain(|job| !taken.contains(&job.id));
    taken.len()
}

/// The candidate that ends first with this job alone, load time included.
fn soonest(job: &Job, app: &AppModels, timeline: &WorkerTimeline) -> Option<usize> {
    let runs = (0..app.runs()).filter(|model| job.models & (1 << model) != 0);
    let taking = runs.filter_map(|model| {
        let (variant, _) = app.models[model].run?;
        let cost = timeline.cost(&app.models[model])?;
        let load_us = if timeline.holds(variant) {
            0
        } else {
            cost.load_us
        };
        Some((load_us + cost.latencies_us.first()?, model))
    });
    taking.min().map(|(_, model)| model)
}
