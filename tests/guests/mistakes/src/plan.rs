//! The plan without a mistake: an idle worker goes on with what is parked on it, else the
//! oldest request and those of its app that run in one batch with it.

use guest_base::contract::{Dispatch, Plan, Window};
use guest_base::empty_plan;

use crate::way::{Way, Yard};

/// Variant of a worker that runs nothing.
const IDLE: u32 = u32::MAX;

pub(crate) fn of(yard: &Yard, window: &Window) -> Plan {
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
        if !is_free || resume(&mut plan, yard, window, worker) {
            continue;
        }
        let oldest = (0..requests.id.len())
            .filter(|&i| !taken[i])
            .find_map(|i| Some((requests.app[i], yard.way(worker, requests.app[i])?)));
        let Some((app, way)) = oldest else { continue };
        let batch = (0..requests.id.len()).filter(|&i| !taken[i] && requests.app[i] == app);
        let batch: Vec<usize> = batch.take(way.batch_max as usize).collect();
        for &i in &batch {
            taken[i] = true;
            plan.members.push(requests.id[i]);
        }
        plan.dispatches.push(run(worker, way, 0, batch.len()));
    }
    plan
}

/// What is parked on the worker at the same stage as the first that is.
fn resume(plan: &mut Plan, yard: &Yard, window: &Window, worker: usize) -> bool {
    let parked = &window.requests.progress;
    let Some(first) = parked.iter().find(|p| p.worker as usize == worker) else {
        return false;
    };
    let way = yard.end(first.variant);
    let same = |p: &&_| {
        let p: &guest_base::contract::Progress = p;
        (p.worker, p.variant, p.stages_run) == (first.worker, first.variant, first.stages_run)
    };
    let before = plan.members.len();
    let together = parked.iter().filter(same).take(way.batch_max as usize);
    plan.members
        .extend(together.map(|p| window.requests.id[p.index as usize]));
    let size = plan.members.len() - before;
    plan.dispatches
        .push(run(worker, way, first.stages_run, size));
    true
}

fn run(worker: usize, way: Way, from_stage: u32, size: usize) -> Dispatch {
    Dispatch {
        worker: worker as u32,
        variant: way.variant,
        from_stage,
        to_stage: way.stages,
        exit: Some(way.exit),
        place: u32::MAX,
        size: size as u32,
    }
}
