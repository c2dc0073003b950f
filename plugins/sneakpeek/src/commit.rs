//! From a schedule to a plan: only what cannot wait is committed. The rest stays pending,
//! so that evidence and arrivals can still change its group.

use switchyard_sdk::{PlanBuilder, Reason};

use crate::line::Line;
use crate::problem::{Choice, Problem, Schedule};

/// Puts a schedule's answers, and the batches that start until `until_us`, into a plan.
pub(crate) fn commit(
    problem: &Problem<'_>,
    lines: &[Line],
    schedule: &Schedule,
    until_us: u64,
    how: &str,
    plan: &mut PlanBuilder,
) {
    let mut lines = lines.to_vec();
    for choice in &schedule.choices {
        match choice.line {
            None => {
                let jobs = problem.groups[choice.group].jobs.clone();
                let reason = reason(problem, choice, "short-circuit");
                problem.jobs[jobs]
                    .iter()
                    .for_each(|job| plan.answer_because(job.id, reason.clone()));
            }
            Some(line) => {
                let reason = reason(problem, choice, how);
                run(problem, choice, &mut lines[line], until_us, &reason, plan);
            }
        }
    }
}

/// Dispatches the batches of one group that start in time.
fn run(
    problem: &Problem<'_>,
    choice: &Choice,
    line: &mut Line,
    until_us: u64,
    reason: &Reason,
    plan: &mut PlanBuilder,
) {
    let candidate = &problem.apps[problem.groups[choice.group].app].models[choice.model];
    let Some(((variant, exit), cost)) = candidate.run.zip(line.cost(candidate)) else {
        return;
    };
    let latencies_us = &cost.latencies_us;
    for batch in problem.batches(choice.group, latencies_us.len()) {
        if line.free_us > until_us {
            break;
        }
        let jobs = &problem.jobs[batch];
        let run = plan
            .run(line.worker, variant)
            .exit(exit)
            .because(reason.clone());
        if run.requests(jobs.iter().map(|job| job.id)) == 0 {
            // Its queue is full: nothing more of this plan goes there.
            line.free_us = u64::MAX;
            break;
        }
        let load_us = if problem.charge_swap { cost.load_us } else { 0 };
        line.load(variant, candidate.memory_bytes, load_us);
        line.free_us = line.free_us.saturating_add(latencies_us[jobs.len() - 1]);
    }
}

/// For the operator: how the schedule was found, and what the group was.
fn reason(problem: &Problem<'_>, choice: &Choice, how: &str) -> Reason {
    let group = &problem.groups[choice.group];
    let reason = Reason::new(how)
        .with("groups", problem.groups.len())
        .with("requests", group.jobs.len());
    match group.label {
        Some(label) => reason.with("class", label),
        None => reason,
    }
}
