//! The rules for routes and their lanes.

use super::bounds::at_most;
use super::named::{check_exit, check_worker};
use super::state::PlanState;
use super::{Lane, Plan, PlanError, Route};
use crate::catalog::Catalog;
use crate::ids::{AppId, ExitId, VariantId, WorkerId};

/// A route's weights may miss 1 by this much.
pub const WEIGHT_TOLERANCE: f64 = 1e-6;

/// Largest capacity of a lane, in requests.
pub const LANE_CAPACITY_MAX: u32 = 65_536;

/// Buffers of the check, reused from window to window.
#[derive(Debug, Default)]
pub(super) struct RouteBuffers {
    apps: Vec<(AppId, usize)>,
    lanes: Vec<((WorkerId, VariantId, ExitId), usize)>,
}

/// Each app has at most one route, and each worker, variant and exit at most one lane in it.
///
/// # Errors
/// The first reason to refuse the plan.
pub(super) fn check_routes<S: PlanState>(
    plan: &Plan,
    state: &S,
    buffers: &mut RouteBuffers,
) -> Result<(), PlanError> {
    if plan.routes.is_empty() {
        return Ok(());
    }
    let apps = (0..).zip(&plan.routes);
    let twice = second_of_equals(&mut buffers.apps, apps.map(|(at, route)| (route.app, at)));
    if let Some((_, index)) = twice {
        let reason = format!("app {} is routed twice", plan.routes[index].app.0);
        return Err(PlanError::invalid(
            format!("routes[{index}]"),
            "app",
            reason,
        ));
    }
    for (index, route) in plan.routes.iter().enumerate() {
        let at = || format!("routes[{index}]");
        if state.catalog().app(route.app).is_none() {
            let reason = format!("there is no app {}", route.app.0);
            return Err(PlanError::invalid(at(), "app", reason));
        }
        let most = lanes_max(state.catalog(), route.app);
        at_most(&format!("routes[{index}].lanes"), route.lanes.len(), most)?;
        for (l, lane) in route.lanes.iter().enumerate() {
            check_lane(|| format!("routes[{index}].lanes[{l}]"), route, lane, state)?;
        }
        let keys = (0..).zip(&route.lanes);
        let keys = keys.map(|(at, lane)| ((lane.worker, lane.variant, lane.exit), at));
        if let Some((first, second)) = second_of_equals(&mut buffers.lanes, keys) {
            let entry = format!("routes[{index}].lanes[{second}]");
            let reason = format!("its variant and exit on it are those of lanes[{first}]");
            return Err(PlanError::invalid(entry, "worker", reason));
        }
        check_weights(at(), &route.lanes)?;
    }
    Ok(())
}

/// One lane for each worker and each exit of the app's variants.
fn lanes_max(catalog: &Catalog, app: AppId) -> usize {
    let exits = catalog.variants_of(app).map(|(_, v)| v.exits.len());
    exits.sum::<usize>().saturating_mul(catalog.workers.len())
}

/// The positions of two equal keys, with the least second one.
fn second_of_equals<K: Copy + Ord>(
    buffer: &mut Vec<(K, usize)>,
    keys: impl Iterator<Item = (K, usize)>,
) -> Option<(usize, usize)> {
    buffer.clear();
    buffer.extend(keys);
    buffer.sort_unstable();
    let pairs = buffer.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let pairs = pairs.map(|pair| (pair[1].1, pair[0].1));
    pairs.min().map(|(second, first)| (first, second))
}

fn check_lane<S: PlanState>(
    at: impl Fn() -> String,
    route: &Route,
    lane: &Lane,
    state: &S,
) -> Result<(), PlanError> {
    let variant = check_worker(&at, lane.worker, lane.variant, state)?;
    if variant.app != route.app {
        let reason = format!("{} is of another app", variant.name);
        return Err(PlanError::invalid(at(), "variant", reason));
    }
    if variant.exit(lane.exit).is_none() {
        let reason = format!("{} has no exit {}", variant.name, lane.exit.0);
        return Err(PlanError::invalid(at(), "exit", reason));
    }
    let spec = &state.catalog().workers[lane.worker.index()];
    check_exit(&at, lane.exit, variant, spec)?;
    let (min, max) = (lane.min_batch, lane.max_batch);
    if min == 0 || min > max || max > variant.max_batch {
        let reason = format!("{min} to {max} is not within 1 to {}", variant.max_batch);
        return Err(PlanError::invalid(at(), "min-batch", reason));
    }
    if lane.capacity < min || lane.capacity > LANE_CAPACITY_MAX {
        let reason = format!("not within min-batch to {LANE_CAPACITY_MAX}");
        return Err(PlanError::invalid(at(), "capacity", reason));
    }
    Ok(())
}

fn check_weights(at: String, lanes: &[Lane]) -> Result<(), PlanError> {
    if lanes.is_empty() {
        return Ok(());
    }
    let sum: f64 = lanes.iter().map(|lane| lane.weight).sum();
    // False for NaN too, so that the sum below is a number.
    let are_shares = lanes
        .iter()
        .all(|lane| (0.0..=1.0 + WEIGHT_TOLERANCE).contains(&lane.weight));
    if !are_shares || (sum - 1.0).abs() > WEIGHT_TOLERANCE {
        let reason = "the weights are not a distribution";
        return Err(PlanError::invalid(at, "lanes", reason));
    }
    Ok(())
}
