//! A plan is checked whole before any of it is applied.

use thiserror::Error;

use super::{Dispatch, Lane, Plan, Route};
use crate::catalog::{Catalog, Variant};
use crate::ids::{AppId, BatchId, RequestId, VariantId, WorkerId};
use crate::table::{Entry, State, Table};
use crate::worker::WorkerSet;

/// A route's weights may miss 1 by this much.
pub const WEIGHT_TOLERANCE: f64 = 1e-6;

/// Largest capacity of a lane.
pub const LANE_CAPACITY_MAX: u32 = 65_536;

/// A plan whose every entry can be applied to the state it was checked against.
#[derive(Debug)]
pub struct CheckedPlan(Plan);

/// Why a plan was refused. The first reason found; nothing of the plan was applied.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PlanError {
    /// A request that is not pending: unknown, ended, or placed elsewhere.
    #[error("{entry}: request {request} is not pending")]
    NotPending {
        /// The entry of the plan.
        entry: String,
        /// The id it names.
        request: u64,
    },
    /// A request named twice.
    #[error("request {request} is named more than once")]
    Doubled {
        /// The id.
        request: u64,
    },
    /// Sizes of the dispatches do not add up to the members.
    #[error("dispatches hold {sizes} requests, members lists {members}")]
    MemberCount {
        /// Sum of the sizes.
        sizes: u64,
        /// Length of `members`.
        members: usize,
    },
    /// A batch that does not wait in a queue.
    #[error("revokes[{index}]: batch {batch} is not queued")]
    NotQueued {
        /// Position in `revokes`.
        index: usize,
        /// The batch named.
        batch: u64,
    },
    /// An entry that names something that does not exist or does not fit.
    #[error("{entry}.{field}: {reason}")]
    Invalid {
        /// The entry, such as `dispatches[3]`.
        entry: String,
        /// Its field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// What a plan is checked against.
pub(crate) struct Yard<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) table: &'a Table,
    /// Brought up to date.
    pub(crate) workers: &'a WorkerSet,
}

/// Buffers of the check, reused from window to window.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    ids: Vec<RequestId>,
    /// Batches taken back, in ascending order.
    revoked: Vec<BatchId>,
    /// Per worker: batches after the plan.
    queued: Vec<u32>,
    /// Per worker: parked requests after the plan; empty when the plan parks none.
    parked: Vec<u32>,
}

// === impl CheckedPlan ===

impl CheckedPlan {
    /// Checks everything, in the order in which it would be applied.
    ///
    /// # Errors
    /// The plan itself, for its buffers, and the first reason to refuse it.
    pub(crate) fn try_new(
        plan: Plan,
        yard: &Yard<'_>,
        scratch: &mut Scratch,
    ) -> Result<Self, Box<(Plan, PlanError)>> {
        match Self::check(&plan, yard, scratch) {
            Ok(()) => Ok(Self(plan)),
            Err(error) => Err(Box::new((plan, error))),
        }
    }

    fn check(plan: &Plan, yard: &Yard<'_>, scratch: &mut Scratch) -> Result<(), PlanError> {
        scratch.reset(plan, yard);
        check_members(plan)?;
        check_revokes(plan, yard, scratch)?;
        check_requests(plan, yard, scratch)?;
        for (index, (dispatch, members)) in plan.batches().enumerate() {
            check_dispatch(index, dispatch, members, yard, scratch)?;
        }
        check_room(plan, yard, scratch)?;
        check_routes(plan, yard)
    }

    /// The plan that passed.
    pub fn plan(&self) -> &Plan {
        &self.0
    }

    /// The plan that passed, no longer vouched for.
    pub fn into_plan(self) -> Plan {
        self.0
    }
}

impl Scratch {
    fn reset(&mut self, plan: &Plan, yard: &Yard<'_>) {
        self.ids.clear();
        self.revoked.clear();
        self.queued.clear();
        self.parked.clear();
        self.queued.extend_from_slice(yard.workers.queued());
        // Counting these looks at every batch there is, and most plans park nothing.
        if plan
            .dispatches
            .iter()
            .any(|dispatch| dispatch.exit.is_none())
        {
            let parked = yard.workers.iter();
            let parked = parked.map(|worker| worker.parked + worker.will_park());
            self.parked.extend(parked);
        }
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

fn check_revokes(plan: &Plan, yard: &Yard<'_>, scratch: &mut Scratch) -> Result<(), PlanError> {
    for (index, &batch) in plan.revokes.iter().enumerate() {
        let error = PlanError::NotQueued {
            index,
            batch: batch.0,
        };
        if plan.revokes[..index].contains(&batch) {
            return Err(error);
        }
        let Some(worker) = holder(batch, yard) else {
            return Err(error);
        };
        scratch.queued[worker] -= 1;
        let held = yard.workers[worker].queue.iter().find(|b| b.id == batch);
        let held = held.filter(|b| b.exit.is_none() && b.from_stage == 0);
        if let (Some(held), Some(parked)) = (held, scratch.parked.get_mut(worker)) {
            *parked -= held.members.len() as u32;
        }
    }
    scratch.revoked.extend_from_slice(&plan.revokes);
    scratch.revoked.sort_unstable();
    Ok(())
}

/// The worker in whose queue a policy's batch waits.
fn holder(batch: BatchId, yard: &Yard<'_>) -> Option<usize> {
    yard.workers
        .iter()
        .position(|worker| worker.queue.iter().any(|b| b.id == batch && !b.pinned))
}

/// Every request named is pending, or will be once the revokes are done, and named once.
fn check_requests(plan: &Plan, yard: &Yard<'_>, scratch: &mut Scratch) -> Result<(), PlanError> {
    let named = [
        ("members", &plan.members),
        ("rejects", &plan.rejects),
        ("answers", &plan.answers),
    ];
    for (list, ids) in named {
        for (index, &id) in ids.iter().enumerate() {
            let entry =
                available(id, &scratch.revoked, yard).ok_or_else(|| PlanError::NotPending {
                    entry: format!("{list}[{index}]"),
                    request: id.0,
                })?;
            if list == "answers" {
                check_answer(index, entry, yard)?;
            }
            scratch.ids.push(id);
        }
    }
    scratch.ids.sort_unstable();
    match scratch.ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(PlanError::Doubled { request: pair[0].0 }),
        None => Ok(()),
    }
}

fn available<'a>(id: RequestId, revoked: &[BatchId], yard: &Yard<'a>) -> Option<&'a Entry> {
    let entry = yard.table.get(id)?;
    match entry.state() {
        State::Pending => Some(entry),
        State::Queued(_, batch) if revoked.binary_search(&batch).is_ok() => Some(entry),
        _ => None,
    }
}

fn check_answer(index: usize, entry: &Entry, yard: &Yard<'_>) -> Result<(), PlanError> {
    let at = || format!("answers[{index}]");
    let app = yard.catalog.app(entry.request.app);
    if app.is_none_or(|app| app.sneakpeek.is_none()) {
        return Err(invalid(at(), "request", "its app has no SneakPeek model"));
    }
    if entry.evidence.is_none() {
        return Err(invalid(at(), "request", "its evidence is not ready"));
    }
    Ok(())
}

fn check_dispatch(
    index: usize,
    dispatch: &Dispatch,
    members: &[RequestId],
    yard: &Yard<'_>,
    scratch: &mut Scratch,
) -> Result<(), PlanError> {
    let at = || format!("dispatches[{index}]");
    let variant = check_place(&at, dispatch.worker, dispatch.variant, yard)?;
    check_stages(&at, dispatch, variant)?;
    if dispatch.size == 0 || dispatch.size > variant.max_batch {
        let reason = format!("{} is not within 1 to {}", dispatch.size, variant.max_batch);
        return Err(invalid(at(), "size", reason));
    }
    for &id in members {
        check_member(&at, dispatch, id, variant.app, yard)?;
    }
    let worker = dispatch.worker.index();
    scratch.queued[worker] += 1;
    if dispatch.exit.is_none() && dispatch.from_stage == 0 {
        scratch.parked[worker] += dispatch.size;
    }
    Ok(())
}

fn check_place<'a>(
    at: &impl Fn() -> String,
    worker: WorkerId,
    variant: VariantId,
    yard: &Yard<'a>,
) -> Result<&'a Variant, PlanError> {
    let Some(spec) = yard.catalog.worker(worker) else {
        return Err(invalid(
            at(),
            "worker",
            format!("there is no worker {}", worker.0),
        ));
    };
    if !yard.workers[worker.index()].up {
        return Err(invalid(at(), "worker", format!("{} is away", spec.name)));
    }
    let Some(found) = yard.catalog.variant(variant) else {
        return Err(invalid(
            at(),
            "variant",
            format!("there is no variant {}", variant.0),
        ));
    };
    if found.memory_bytes > spec.memory_bytes {
        let reason = format!("{} can never hold {}", spec.name, found.name);
        return Err(invalid(at(), "variant", reason));
    }
    Ok(found)
}

fn check_stages(
    at: &impl Fn() -> String,
    dispatch: &Dispatch,
    variant: &Variant,
) -> Result<(), PlanError> {
    let Dispatch {
        from_stage: from,
        to_stage: to,
        ..
    } = *dispatch;
    if from >= to || to > variant.stages {
        let reason = format!("[{from}, {to}) is not a range of {} stages", variant.stages);
        return Err(invalid(at(), "to-stage", reason));
    }
    match dispatch.exit {
        None if to == variant.stages => Err(invalid(
            at(),
            "exit",
            "after the last stage there is nothing to park for",
        )),
        None => Ok(()),
        Some(exit) => match variant.exit(exit) {
            None => Err(invalid(
                at(),
                "exit",
                format!("{} has no exit {}", variant.name, exit.0),
            )),
            Some(found) if found.after_stage != to => Err(invalid(
                at(),
                "exit",
                format!(
                    "{} follows stage {}, not {to}",
                    found.name, found.after_stage
                ),
            )),
            Some(_) => Ok(()),
        },
    }
}

fn check_member(
    at: &impl Fn() -> String,
    dispatch: &Dispatch,
    id: RequestId,
    app: AppId,
    yard: &Yard<'_>,
) -> Result<(), PlanError> {
    let Some(entry) = yard.table.get(id) else {
        return Err(PlanError::NotPending {
            entry: at(),
            request: id.0,
        });
    };
    if entry.request.app != app {
        return Err(invalid(
            at(),
            "variant",
            format!("request {} is of another app", id.0),
        ));
    }
    let fits = match entry.progress {
        None => dispatch.from_stage == 0,
        Some(progress) => {
            progress.worker == dispatch.worker
                && progress.variant == dispatch.variant
                && progress.stages_run == dispatch.from_stage
        }
    };
    if fits {
        return Ok(());
    }
    let reason = match entry.progress {
        None => format!("request {} has run no stage", id.0),
        Some(p) => format!(
            "request {} is parked on worker {} after stage {} of variant {}",
            id.0, p.worker.0, p.stages_run, p.variant.0
        ),
    };
    Err(invalid(at(), "from-stage", reason))
}

/// Queues and parking have named bounds. A running worker's queue holds `queue_max`
/// batches; an idle one takes one more, which starts at once.
fn check_room(plan: &Plan, yard: &Yard<'_>, scratch: &Scratch) -> Result<(), PlanError> {
    for (index, dispatch) in plan.dispatches.iter().enumerate() {
        let w = dispatch.worker.index();
        let (spec, worker) = (&yard.catalog.workers[w], &yard.workers[w]);
        let starts_at_once = u32::from(worker.running.is_none());
        if scratch.queued[w] > spec.queue_max + starts_at_once {
            let reason = format!("{} queues at most {} batches", spec.name, spec.queue_max);
            return Err(invalid(format!("dispatches[{index}]"), "worker", reason));
        }
        if dispatch.exit.is_none() && scratch.parked[w] > spec.parked_max {
            let reason = format!("{} parks at most {} requests", spec.name, spec.parked_max);
            return Err(invalid(format!("dispatches[{index}]"), "exit", reason));
        }
    }
    Ok(())
}

fn check_routes(plan: &Plan, yard: &Yard<'_>) -> Result<(), PlanError> {
    for (index, route) in plan.routes.iter().enumerate() {
        let at = format!("routes[{index}]");
        if yard.catalog.app(route.app).is_none() {
            return Err(invalid(
                at,
                "app",
                format!("there is no app {}", route.app.0),
            ));
        }
        if plan.routes[..index].iter().any(|r| r.app == route.app) {
            return Err(invalid(
                at,
                "app",
                format!("app {} is routed twice", route.app.0),
            ));
        }
        for (l, lane) in route.lanes.iter().enumerate() {
            check_lane(&format!("{at}.lanes[{l}]"), route, lane, yard)?;
        }
        check_weights(at, &route.lanes)?;
    }
    Ok(())
}

fn check_lane(at: &str, route: &Route, lane: &Lane, yard: &Yard<'_>) -> Result<(), PlanError> {
    let at = || at.to_owned();
    let variant = check_place(&at, lane.worker, lane.variant, yard)?;
    if variant.app != route.app {
        return Err(invalid(
            at(),
            "variant",
            format!("{} is of another app", variant.name),
        ));
    }
    if variant.exit(lane.exit).is_none() {
        let reason = format!("{} has no exit {}", variant.name, lane.exit.0);
        return Err(invalid(at(), "exit", reason));
    }
    if lane.min_batch == 0 || lane.min_batch > lane.max_batch || lane.max_batch > variant.max_batch
    {
        let reason = format!(
            "{} to {} is not within 1 to {}",
            lane.min_batch, lane.max_batch, variant.max_batch
        );
        return Err(invalid(at(), "min-batch", reason));
    }
    if lane.capacity < lane.min_batch || lane.capacity > LANE_CAPACITY_MAX {
        let reason = format!("not within min-batch to {LANE_CAPACITY_MAX}");
        return Err(invalid(at(), "capacity", reason));
    }
    Ok(())
}

fn check_weights(at: String, lanes: &[Lane]) -> Result<(), PlanError> {
    if lanes.is_empty() {
        return Ok(());
    }
    let sum: f64 = lanes.iter().map(|lane| lane.weight).sum();
    let valid = lanes
        .iter()
        .all(|lane| (0.0..=1.0 + WEIGHT_TOLERANCE).contains(&lane.weight));
    // `valid` is false for weights that are not numbers, so the sum is one.
    if !valid || (sum - 1.0).abs() > WEIGHT_TOLERANCE {
        return Err(invalid(at, "lanes", "the weights are not a distribution"));
    }
    Ok(())
}

fn invalid(entry: String, field: &'static str, reason: impl Into<String>) -> PlanError {
    PlanError::Invalid {
        entry,
        field,
        reason: reason.into(),
    }
}
