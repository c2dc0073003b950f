//! The rules that a plan must keep, for any kind of moment.

use super::bounds;
use super::lanes::{self, RouteBuffers};
use super::named::{check_exit, check_worker};
use super::rooms::WorkerRooms;
use super::state::{PlanState, RequestStands, RequestView};
use super::{Dispatch, Plan, PlanError};
use crate::catalog::{Variant, WorkerSpec};
use crate::ids::{AppId, BatchId, RequestId, WorkerId};

/// Buffers of the check, reused from window to window.
#[derive(Debug, Default)]
pub(crate) struct CheckBuffers {
    ids: Vec<RequestId>,
    /// Batches taken back, in ascending order.
    revoked: Vec<BatchId>,
    /// The same with their workers.
    revokes: Vec<(BatchId, WorkerId)>,
    routes: RouteBuffers,
    rooms: WorkerRooms,
}

/// Checks everything, in the order in which it would be applied.
///
/// # Errors
/// The first reason to refuse the plan.
pub(super) fn check<S: PlanState>(
    plan: &Plan,
    state: &S,
    buffers: &mut CheckBuffers,
) -> Result<(), PlanError> {
    buffers.reset(plan, state);
    bounds::check(plan, state)?;
    check_members(plan)?;
    check_revokes(plan, state, buffers)?;
    check_requests(plan, state, buffers)?;
    for (index, (dispatch, members)) in plan.batches().enumerate() {
        check_dispatch(index, dispatch, members, state, buffers)?;
    }
    check_room(plan, state, buffers)?;
    lanes::check_routes(plan, state, &mut buffers.routes)
}

// === impl CheckBuffers ===

impl CheckBuffers {
    fn reset<S: PlanState>(&mut self, plan: &Plan, state: &S) {
        self.ids.clear();
        self.revoked.clear();
        self.revokes.clear();
        let parks = plan.dispatches.iter().any(|one| one.exit.is_none());
        self.rooms.reset(state.catalog().workers.len(), parks);
    }

    /// The worker of a batch that the plan checked last takes back.
    pub(crate) fn worker_of(&self, id: BatchId) -> Option<WorkerId> {
        let revokes = &self.revokes;
        let at = revokes.binary_search_by_key(&id, |&(batch, _)| batch);
        at.ok().map(|at| revokes[at].1)
    }
}

fn check_members(plan: &Plan) -> Result<(), PlanError> {
    let sizes: u64 = plan.dispatches.iter().map(|d| u64::from(d.size)).sum();
    if sizes != plan.members.len() as u64 {
        return Err(PlanError::MemberCount {
            sizes,
            members: plan.members.len(),
        });
    }
    Ok(())
}

fn check_revokes<S: PlanState>(
    plan: &Plan,
    state: &S,
    buffers: &mut CheckBuffers,
) -> Result<(), PlanError> {
    buffers.revoked.extend_from_slice(&plan.revokes);
    buffers.revoked.sort_unstable();
    let pairs = &mut buffers.revoked.windows(2);
    if let Some(pair) = pairs.find(|pair| pair[0] == pair[1]) {
        let batch = pair[0];
        let mut named = (0..).zip(&plan.revokes).filter(|(_, id)| **id == batch);
        let index = named.nth(1).map_or(0, |(index, _)| index);
        return Err(PlanError::NotQueued { index, batch });
    }
    for (index, &batch) in plan.revokes.iter().enumerate() {
        let held = state.batch(batch);
        let held = held.ok_or(PlanError::NotQueued { index, batch })?;
        buffers.revokes.push((batch, held.worker));
        let room = buffers.rooms.of(held.worker, state);
        room.queued = room.queued.saturating_sub(1);
        room.parked = room.parked.saturating_sub(held.parks);
    }
    buffers.revokes.sort_unstable();
    Ok(())
}

/// Every request named is pending, or will be once the revokes are done, and is named once.
fn check_requests<S: PlanState>(
    plan: &Plan,
    state: &S,
    buffers: &mut CheckBuffers,
) -> Result<(), PlanError> {
    let named = [
        ("members", &plan.members),
        ("rejects", &plan.rejects),
        ("answers", &plan.answers),
    ];
    for (list, ids) in named {
        for (index, &id) in ids.iter().enumerate() {
            let request = available(id, &buffers.revoked, state);
            let request = request.ok_or_else(|| PlanError::NotPending {
                entry: format!("{list}[{index}]"),
                request: id,
            })?;
            if list == "answers" {
                check_answer(index, request, state)?;
            }
            buffers.ids.push(id);
        }
    }
    buffers.ids.sort_unstable();
    match buffers.ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(PlanError::Doubled { request: pair[0] }),
        None => Ok(()),
    }
}

fn available<S: PlanState>(id: RequestId, revoked: &[BatchId], state: &S) -> Option<RequestView> {
    let request = state.request(id)?;
    match request.stands {
        RequestStands::Pending => Some(request),
        RequestStands::Queued(batch) if revoked.binary_search(&batch).is_ok() => Some(request),
        RequestStands::Queued(_) | RequestStands::Elsewhere => None,
    }
}

fn check_answer<S: PlanState>(
    index: usize,
    request: RequestView,
    state: &S,
) -> Result<(), PlanError> {
    let refused = |reason| PlanError::invalid(format!("answers[{index}]"), "request", reason);
    let app = state.catalog().app(request.app);
    if app.is_none_or(|app| app.sneakpeek.is_none()) {
        return Err(refused("its app has no SneakPeek model"));
    }
    if request.is_whole && !request.has_evidence {
        return Err(refused("its evidence is not ready"));
    }
    Ok(())
}

fn check_dispatch<S: PlanState>(
    index: usize,
    dispatch: &Dispatch,
    members: &[RequestId],
    state: &S,
    buffers: &mut CheckBuffers,
) -> Result<(), PlanError> {
    let at = || format!("dispatches[{index}]");
    let variant = check_worker(&at, dispatch.worker, dispatch.variant, state)?;
    check_stages(&at, dispatch, variant)?;
    let spec = &state.catalog().workers[dispatch.worker.index()];
    check_capabilities(&at, dispatch, variant, spec)?;
    if dispatch.size == 0 || dispatch.size > variant.max_batch {
        let reason = format!("{} is not within 1 to {}", dispatch.size, variant.max_batch);
        return Err(PlanError::invalid(at(), "size", reason));
    }
    for &id in members {
        check_member(&at, dispatch, id, variant.app, state)?;
    }
    let room = buffers.rooms.of(dispatch.worker, state);
    room.queued = room.queued.saturating_add(1);
    if dispatch.exit.is_none() && dispatch.from_stage == 0 {
        room.parked = room.parked.saturating_add(dispatch.size);
    }
    Ok(())
}

fn check_stages(
    at: &impl Fn() -> String,
    dispatch: &Dispatch,
    variant: &Variant,
) -> Result<(), PlanError> {
    let (from, to) = (dispatch.from_stage, dispatch.to_stage);
    if from >= to || to > variant.stages {
        let reason = format!("[{from}, {to}) is not a range of {} stages", variant.stages);
        return Err(PlanError::invalid(at(), "to-stage", reason));
    }
    let Some(exit) = dispatch.exit else {
        if to < variant.stages {
            return Ok(());
        }
        let reason = "after the last stage there is nothing to park for";
        return Err(PlanError::invalid(at(), "exit", reason));
    };
    match variant.exit(exit) {
        Some(found) if found.after_stage == to => Ok(()),
        Some(found) => {
            let (name, after) = (&found.name, found.after_stage);
            let reason = format!("{name} follows stage {after}, not {to}");
            Err(PlanError::invalid(at(), "exit", reason))
        }
        None => {
            let reason = format!("{} has no exit {}", variant.name, exit.0);
            Err(PlanError::invalid(at(), "exit", reason))
        }
    }
}

/// The worker runs batches of this kind.
fn check_capabilities(
    at: &impl Fn() -> String,
    dispatch: &Dispatch,
    variant: &Variant,
    spec: &WorkerSpec,
) -> Result<(), PlanError> {
    let refused = |field, reason: &str| {
        let reason = format!("{} {reason}", spec.name);
        Err(PlanError::invalid(at(), field, reason))
    };
    let is_range = dispatch.from_stage > 0 || dispatch.exit.is_none();
    if is_range && !spec.can.stage_ranges {
        return refused("to-stage", "runs whole variants, no ranges of stages");
    }
    match dispatch.exit {
        None if !spec.can.parking => refused("exit", "parks no requests"),
        Some(exit) => check_exit(at, exit, variant, spec),
        None => Ok(()),
    }
}

fn check_member<S: PlanState>(
    at: &impl Fn() -> String,
    dispatch: &Dispatch,
    id: RequestId,
    app: AppId,
    state: &S,
) -> Result<(), PlanError> {
    let Some(request) = state.request(id) else {
        return Err(PlanError::NotPending {
            entry: at(),
            request: id,
        });
    };
    if request.app != app {
        let reason = format!("request {} is of another app", id.0);
        return Err(PlanError::invalid(at(), "variant", reason));
    }
    let fits = match request.progress {
        None => dispatch.from_stage == 0,
        Some(progress) => {
            progress.worker == dispatch.worker
                && progress.variant == dispatch.variant
                && progress.stages_run == dispatch.from_stage
        }
    };
    if fits || !request.is_whole {
        return Ok(());
    }
    let reason = match request.progress {
        None => format!("request {} has run no stage", id.0),
        Some(p) => format!(
            "request {} is parked on worker {} after stage {} of variant {}",
            id.0, p.worker.0, p.stages_run, p.variant.0
        ),
    };
    Err(PlanError::invalid(at(), "from-stage", reason))
}

/// Queues and parking have named bounds. The queue of a worker that runs a batch holds
/// `queue_max` batches; an idle worker takes one more, which starts at once.
fn check_room<S: PlanState>(
    plan: &Plan,
    state: &S,
    buffers: &mut CheckBuffers,
) -> Result<(), PlanError> {
    for (index, dispatch) in plan.dispatches.iter().enumerate() {
        let worker = dispatch.worker;
        let spec = &state.catalog().workers[worker.index()];
        let starts_at_once = u32::from(!state.is_running(worker));
        let room = *buffers.rooms.of(worker, state);
        if room.queued > spec.queue_max.saturating_add(starts_at_once) {
            let reason = format!("{} queues at most {} batches", spec.name, spec.queue_max);
            let entry = format!("dispatches[{index}]");
            return Err(PlanError::invalid(entry, "worker", reason));
        }
        if dispatch.exit.is_none() && room.parked > spec.parked_max {
            let reason = format!("{} parks at most {} requests", spec.name, spec.parked_max);
            let entry = format!("dispatches[{index}]");
            return Err(PlanError::invalid(entry, "exit", reason));
        }
    }
    Ok(())
}
