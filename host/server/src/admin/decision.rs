//! A decision as JSON, with names instead of ids: the window, the plan and its reasons.

use serde_json::{Value, json};
use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::window::{Causes, IDLE, Window};

use crate::judge::{Alternative, Alternatives};
use crate::reasons::{self, Why};

/// The place at the end of any queue. JSON has `null` for it.
const END: u32 = u32::MAX;

/// Batches and refused requests of a window whose alternatives are shown.
const EXPLAINED_MAX: usize = 16;

/// Alternatives shown of each.
const ALTERNATIVES_MAX: usize = 4;

/// The whole decision, and the alternatives of its first batches and of `asked`. Times are microseconds since the server began.
pub(super) fn json(catalog: &Catalog, decision: &Decision, asked: Option<RequestId>) -> Value {
    let Decision {
        window, plan, by, ..
    } = decision;
    json!({
        "window": window.id,
        "now_us": window.now.0,
        "because": causes(window.because),
        "by": &**by,
        "requests": requests(catalog, window),
        "workers": workers(catalog, window),
        "arrival_rate": window.arrival_rate,
        "plan": plan_json(catalog, window, plan, asked),
    })
}

fn causes(causes: Causes) -> Vec<&'static str> {
    let named = [
        ("periodic", causes.periodic),
        ("arrival", causes.arrival),
        ("worker-idle", causes.worker_idle),
        ("completion", causes.completion),
        ("evidence", causes.evidence),
        ("wake", causes.wake),
        ("changed", causes.changed),
        ("workers", causes.workers),
    ];
    let held = named.into_iter().filter(|(_, holds)| *holds);
    held.map(|(name, _)| name).collect()
}

fn requests(catalog: &Catalog, window: &Window) -> Vec<Value> {
    let r = &window.requests;
    let mut rows: Vec<Value> = (0..window.len())
        .map(|i| {
            json!({
                "id": r.id[i],
                "app": app_name(catalog, AppId(r.app[i])),
                "arrival_us": r.arrival[i],
                "deadline_us": r.deadline[i],
                "priority": r.priority[i],
                "min_accuracy": r.min_accuracy[i],
            })
        })
        .collect();
    let mut counts = r.evidence_counts.as_slice();
    for &index in &r.evidence_index {
        let i = index as usize;
        let app = r.app.get(i).and_then(|&app| catalog.app(AppId(app)));
        let classes = app.map_or(0, |app| app.classes.len()).min(counts.len());
        let (own, rest) = counts.split_at(classes);
        counts = rest;
        if let Some(row) = rows.get_mut(i) {
            row["evidence"] = json!(own);
        }
    }
    for cost in &r.costs {
        if let Some(row) = rows.get_mut(cost.index as usize) {
            row["cost"] = json!(cost.cost.as_f64());
        }
    }
    for progress in &r.progress {
        if let Some(row) = rows.get_mut(progress.index as usize) {
            row["parked"] = json!({
                "worker": worker_name(catalog, progress.worker),
                "variant": variant_name(catalog, progress.variant),
                "stages_run": progress.stages_run,
            });
        }
    }
    rows
}

fn workers(catalog: &Catalog, window: &Window) -> Vec<Value> {
    let w = &window.workers;
    let ids = (0..).map(WorkerId).take(w.busy_until.len());
    ids.map(|worker| {
        let i = worker.index();
        let running = match w.running_variant[i] {
            IDLE => None,
            variant => Some(variant_name(catalog, VariantId(variant))),
        };
        json!({
            "worker": worker_name(catalog, worker),
            "up": w.up[i] != 0,
            "busy_until_us": w.busy_until[i],
            "free_at_us": w.free_at[i],
            "running": running,
            "queued": w.queued[i],
            "parked": w.parked[i],
            "free_memory": w.free_memory[i],
        })
    })
    .collect()
}

fn plan_json(catalog: &Catalog, window: &Window, plan: &Plan, asked: Option<RequestId>) -> Value {
    let ways = Alternatives::new(catalog, window, plan);
    let planned = ways.planned();
    let is_asked = |id: &RequestId| asked == Some(*id);
    let dispatches: Vec<Value> = plan
        .batches()
        .enumerate()
        .map(|(at, (dispatch, members))| {
            let reason = reasons::of_dispatch(plan, at);
            let mut shown = dispatch_json(catalog, dispatch, members, reason);
            if let Some(expected) = planned.get(at) {
                shown["expected"] = expected_json(window, expected);
            }
            if at < EXPLAINED_MAX || members.iter().any(is_asked) {
                let others = ways.to_dispatch(at);
                shown["alternatives"] = alternatives_json(catalog, window, &others);
            }
            shown
        })
        .collect();
    let ended = plan.rejects.iter().chain(&plan.answers);
    let ended = ended.filter_map(|&request| {
        let reason = Why::of(reasons::of_request(plan, request)?).json();
        Some(json!({"request": request.0, "reason": reason}))
    });
    let refused = plan.rejects.iter().take(EXPLAINED_MAX).copied();
    let unplaced = asked.filter(|id| is_unplaced(plan, *id));
    let could = refused.chain(unplaced).map(|id| {
        let others = alternatives_json(catalog, window, &ways.to_request(id));
        json!({"request": id.0, "alternatives": others})
    });
    json!({
        "dispatches": dispatches,
        "revokes": plan.revokes.iter().map(|batch| batch.0).collect::<Vec<_>>(),
        "rejects": ids(&plan.rejects),
        "answers": ids(&plan.answers),
        // Of rejects and answers. Dispatches have their own.
        "reasons": ended.collect::<Vec<_>>(),
        // The ways that refused requests could have gone.
        "instead": could.collect::<Vec<_>>(),
        "routes": plan.routes.len(),
        "wake_us": plan.wake.map(|at| at.0),
    })
}

/// The plan leaves the request to wait.
fn is_unplaced(plan: &Plan, id: RequestId) -> bool {
    let named = [&plan.members, &plan.rejects, &plan.answers];
    !named.iter().any(|ids| ids.contains(&id))
}

/// Times count from the window.
fn expected_json(window: &Window, way: &Alternative) -> Value {
    json!({
        "in_us": way.end.map(|end| end.since(window.now).0),
        "utility": way.utility,
        "late": way.late,
    })
}

fn alternatives_json(catalog: &Catalog, window: &Window, ways: &[Alternative]) -> Value {
    let shown = ways.iter().take(ALTERNATIVES_MAX).map(|way| {
        let mut shown = expected_json(window, way);
        shown["worker"] = json!(worker_name(catalog, way.worker));
        shown["variant"] = json!(variant_name(catalog, way.variant));
        shown["exit"] = json!(way.exit.map(|exit| exit_name(catalog, way.variant, exit)));
        shown
    });
    shown.collect()
}

fn dispatch_json(
    catalog: &Catalog,
    dispatch: &Dispatch,
    members: &[RequestId],
    reason: Option<&str>,
) -> Value {
    let exit = dispatch
        .exit
        .map(|exit| exit_name(catalog, dispatch.variant, exit));
    json!({
        "worker": worker_name(catalog, dispatch.worker),
        "variant": variant_name(catalog, dispatch.variant),
        "exit": exit,
        "stages": [dispatch.from_stage, dispatch.to_stage],
        "place": (dispatch.place != END).then_some(dispatch.place),
        "requests": ids(members),
        // The row of the profile that the policy planned with.
        "profiled_us": dispatch.profiled(catalog).map(|latency| latency.0),
        "reason": reason.map(|text| Why::of(text).json()),
    })
}

fn ids(requests: &[RequestId]) -> Vec<u64> {
    requests.iter().map(|request| request.0).collect()
}

fn app_name(catalog: &Catalog, id: AppId) -> String {
    catalog
        .app(id)
        .map_or_else(|| id.0.to_string(), |app| app.name.clone())
}

fn variant_name(catalog: &Catalog, id: VariantId) -> String {
    catalog
        .variant(id)
        .map_or_else(|| id.0.to_string(), |variant| variant.name.clone())
}

fn exit_name(catalog: &Catalog, variant: VariantId, id: ExitId) -> String {
    let exit = catalog
        .variant(variant)
        .and_then(|variant| variant.exit(id));
    exit.map_or_else(|| id.0.to_string(), |exit| exit.name.clone())
}

fn worker_name(catalog: &Catalog, id: WorkerId) -> String {
    catalog
        .worker(id)
        .map_or_else(|| id.0.to_string(), |worker| worker.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_queue_is_null() {
        let catalog = Catalog::default();
        let place = |place| {
            let dispatch = Dispatch {
                worker: WorkerId(0),
                variant: VariantId(0),
                from_stage: 0,
                to_stage: 1,
                exit: None,
                place,
                size: 0,
            };
            dispatch_json(&catalog, &dispatch, &[], None)["place"].clone()
        };
        assert_eq!(place(END), Value::Null);
        assert_eq!(place(2), json!(2));
    }
}
