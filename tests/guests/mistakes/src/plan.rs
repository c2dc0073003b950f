//! The plan without a mistake: an idle worker resumes the requests that are parked on it. If there
//! are none, it gets the oldest request, in one batch with others of its app.

use guest_base::contract::{Dispatch, Plan, Window};
use guest_base::empty_plan;

use crate::facts::{CatalogFacts, VariantEnd};

/// `running-variant` of an idle worker.
const IDLE: u32 = u32::MAX;

pub(crate) fn of(facts: &CatalogFacts, window: &Window) -> Plan {
    let mut plan = empty_plan();
    let requests = &window.requests;
    let mut taken: Vec<bool> = vec![false; requests.id.len()];
    for parked in &requests.progress {
        taken[parked.index as usize] = true;
    }
    let workers = &window.workers;
    for worker in 0..workers.up.len() {
        let is_free = workers.up[worker] == 1
            && workers.running_variant[worker] == IDLE
            && workers.queued[worker] == 0;
        if !is_free || resume(&mut plan, facts, window, worker) {
            continue;
        }
        let oldest = (0..requests.id.len())
            .filter(|&i| !taken[i])
            .find_map(|i| Some((requests.app[i], facts.variant_for(worker, requests.app[i])?)));
        let Some((app, end)) = oldest else { continue };
        let batch = (0..requests.id.len()).filter(|&i| !taken[i] && requests.app[i] == app);
        let batch: Vec<usize> = batch.take(end.batch_max as usize).collect();
        for &i in &batch {
            taken[i] = true;
            plan.members.push(requests.id[i]);
        }
        plan.dispatches.push(dispatch(worker, end, 0, batch.len()));
    }
    plan
}

/// Resumes the first request that is parked on the worker, with others at the same stage. Returns
/// false if none is parked.
fn resume(plan: &mut Plan, facts: &CatalogFacts, window: &Window, worker: usize) -> bool {
    let parked = &window.requests.progress;
    let Some(first) = parked.iter().find(|p| p.worker as usize == worker) else {
        return false;
    };
    let end = facts.end(first.variant);
    let same = |p: &&_| {
        let p: &guest_base::contract::Progress = p;
        (p.worker, p.variant, p.stages_run) == (first.worker, first.variant, first.stages_run)
    };
    let before = plan.members.len();
    let together = parked.iter().filter(same).take(end.batch_max as usize);
    plan.members
        .extend(together.map(|p| window.requests.id[p.index as usize]));
    let size = plan.members.len() - before;
    plan.dispatches
        .push(dispatch(worker, end, first.stages_run, size));
    true
}

fn dispatch(worker: usize, end: VariantEnd, from_stage: u32, size: usize) -> Dispatch {
    Dispatch {
        worker: worker as u32,
        variant: end.variant,
        from_stage,
        to_stage: end.stages,
        exit: Some(end.exit),
        place: u32::MAX,
        size: size as u32,
    }
}
