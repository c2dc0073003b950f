//! The host's check of a plan, as far as a window shows the host's state.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::ids::{AppId, VariantId, WorkerId};

/// Whether the host would accept a plan for this window.
///
/// # Errors
/// The first entry it would refuse, and why.
pub fn check(catalog: &Catalog, window: &raw::Window, plan: &raw::Plan) -> Result<(), String> {
    let sizes: u64 = plan.dispatches.iter().map(|d| u64::from(d.size)).sum();
    if sizes != plan.members.len() as u64 {
        return Err(format!(
            "sizes add up to {sizes}, members to {}",
            plan.members.len()
        ));
    }
    check_requests(catalog, window, plan)?;
    let mut start = 0;
    for (at, dispatch) in plan.dispatches.iter().enumerate() {
        let members = &plan.members[start..start + dispatch.size as usize];
        start += dispatch.size as usize;
        check_dispatch(catalog, window, dispatch, members)
            .map_err(|reason| format!("dispatches[{at}]: {reason}"))?;
    }
    for worker in catalog.workers() {
        check_room(worker.id, catalog, window, plan)?;
    }
    plan.routes
        .iter()
        .try_for_each(|route| check_route(catalog, route))
}

fn position(window: &raw::Window, request: u64) -> Option<usize> {
    window.requests.id.iter().position(|&id| id == request)
}

/// Named once, and pending or in a batch that this plan revokes.
fn check_requests(catalog: &Catalog, window: &raw::Window, plan: &raw::Plan) -> Result<(), String> {
    let mut named: Vec<u64> = Vec::new();
    named.extend(
        plan.members
            .iter()
            .chain(&plan.rejects)
            .chain(&plan.answers),
    );
    for &id in &named {
        let revoked = |at: usize| plan.revokes.contains(&window.placed.batch[at]);
        let placed = window.placed.id.iter().position(|&placed| placed == id);
        if position(window, id).is_none() && !placed.is_some_and(revoked) {
            return Err(format!("request {id} is not pending"));
        }
    }
    named.sort_unstable();
    if let Some(pair) = named.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("request {} is named more than once", pair[0]));
    }
    for &id in &plan.answers {
        let at = position(window, id).ok_or(format!("answers: request {id} is not pending"))?;
        if !window.requests.evidence_index.contains(&(at as u32)) {
            return Err(format!(
                "answers: the evidence of request {id} is not ready"
            ));
        }
        if catalog
            .app(AppId(window.requests.app[at]))
            .sneakpeek
            .is_none()
        {
            return Err(format!(
                "answers: the app of request {id} has no SneakPeek model"
            ));
        }
    }
    Ok(())
}

fn check_dispatch(
    catalog: &Catalog,
    window: &raw::Window,
    dispatch: &raw::Dispatch,
    members: &[u64],
) -> Result<(), String> {
    let variants = catalog.raw().variants.get(dispatch.variant as usize);
    let variant = variants.ok_or(format!("there is no variant {}", dispatch.variant))?;
    let workers = catalog.raw().workers.get(dispatch.worker as usize);
    let worker = workers.ok_or(format!("there is no worker {}", dispatch.worker))?;
    if window.workers.up[dispatch.worker as usize] == 0 {
        return Err(format!("{} is away", worker.name));
    }
    if variant.memory_bytes > worker.memory_bytes {
        return Err(format!("{} can never hold {}", worker.name, variant.name));
    }
    if dispatch.size == 0 || dispatch.size > variant.max_batch {
        return Err(format!(
            "size {} is not within 1 to {}",
            dispatch.size, variant.max_batch
        ));
    }
    check_stages(dispatch, variant)?;
    for &id in members {
        check_member(window, dispatch, variant, id)?;
    }
    Ok(())
}

fn check_stages(dispatch: &raw::Dispatch, variant: &raw::ModelVariant) -> Result<(), String> {
    let (from, to) = (dispatch.from_stage, dispatch.to_stage);
    if from >= to || to > variant.stages {
        return Err(format!(
            "[{from}, {to}) is not a range of {} stages",
            variant.stages
        ));
    }
    let Some(exit) = dispatch.exit else {
        return match to == variant.stages {
            true => Err("after the last stage there is nothing to park for".to_owned()),
            false => Ok(()),
        };
    };
    match variant.exits.get(exit as usize) {
        Some(found) if found.after_stage == to => Ok(()),
        Some(found) => Err(format!(
            "{} follows stage {}, not {to}",
            found.name, found.after_stage
        )),
        None => Err(format!("{} has no exit {exit}", variant.name)),
    }
}

fn check_member(
    window: &raw::Window,
    dispatch: &raw::Dispatch,
    variant: &raw::ModelVariant,
    id: u64,
) -> Result<(), String> {
    let Some(at) = position(window, id) else {
        // Of a revoked batch: its progress is not in the window.
        return Ok(());
    };
    if window.requests.app[at] != variant.app {
        return Err(format!("request {id} is of another app"));
    }
    let progress = window
        .requests
        .progress
        .iter()
        .find(|p| p.index as usize == at);
    let fits = match progress {
        None => dispatch.from_stage == 0,
        Some(p) => {
            (p.worker, p.variant, p.stages_run)
                == (dispatch.worker, dispatch.variant, dispatch.from_stage)
        }
    };
    match fits {
        true => Ok(()),
        false => Err(format!("request {id} has run other stages")),
    }
}

fn check_room(
    worker: WorkerId,
    catalog: &Catalog,
    window: &raw::Window,
    plan: &raw::Plan,
) -> Result<(), String> {
    let spec = catalog.worker(worker);
    let columns = &window.workers;
    let placed = plan.dispatches.iter().filter(|d| d.worker == worker.0);
    let (mut queued, mut parked) = (
        columns.queued[worker.index()],
        columns.parked[worker.index()],
    );
    for dispatch in placed {
        queued += 1;
        if dispatch.exit.is_none() && dispatch.from_stage == 0 {
            parked += dispatch.size;
        }
    }
    let idle = columns.running_variant[worker.index()] == u32::MAX;
    let revoked = plan.revokes.len() as u32;
    if queued > spec.queue_max + u32::from(idle) + revoked {
        return Err(format!(
            "{} queues at most {} batches",
            spec.name, spec.queue_max
        ));
    }
    if parked > spec.parked_max.max(columns.parked[worker.index()]) {
        return Err(format!(
            "{} parks at most {} requests",
            spec.name, spec.parked_max
        ));
    }
    Ok(())
}

fn check_route(catalog: &Catalog, route: &raw::Route) -> Result<(), String> {
    let at = format!("route of app {}", route.app);
    if route.app as usize >= catalog.apps().len() {
        return Err(format!("{at}: there is no such app"));
    }
    for lane in &route.lanes {
        let known = (lane.variant as usize) < catalog.variants().len()
            && (lane.worker as usize) < catalog.workers().len();
        if !known || catalog.variant(VariantId(lane.variant)).app() != AppId(route.app) {
            return Err(format!("{at}: a lane's worker or variant does not do"));
        }
        let variant = catalog.variant(VariantId(lane.variant));
        let batches = 1 <= lane.min_batch && lane.min_batch <= lane.max_batch;
        if !batches || lane.max_batch > variant.max_batch || lane.capacity < lane.min_batch {
            return Err(format!(
                "{at}: a lane's batches are not within 1 to {}",
                variant.max_batch
            ));
        }
        if lane.exit as usize >= variant.exits.len() {
            return Err(format!("{at}: {} has no exit {}", variant.name, lane.exit));
        }
    }
    let sum: f64 = route.lanes.iter().map(|lane| lane.weight).sum();
    let shares = route.lanes.iter().all(|lane| lane.weight >= 0.0);
    match route.lanes.is_empty() || shares && (sum - 1.0).abs() <= 1e-6 {
        true => Ok(()),
        false => Err(format!("{at}: the weights are not a distribution")),
    }
}
