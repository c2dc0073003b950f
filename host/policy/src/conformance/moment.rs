//! What only the window can say about a plan: workers that are away, queues that are full,
//! batches that wait, requests that are half run. The rest is left to the host's own check,
//! asked about a moment in which nothing of that is left.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{BatchId, RequestId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::window::{IDLE, PlacedState, RequestProgress, Window};

/// Checks a plan against the moment, and returns window and plan as they would be if every
/// revoked batch was pending again and no request had run yet.
///
/// # Errors
/// Why the host would refuse the plan.
pub(super) fn settle(
    catalog: &Catalog,
    window: &Window,
    plan: &Plan,
) -> Result<(Window, Plan), String> {
    let mut window = window.clone();
    let mut plan = plan.clone();
    check_rooms(catalog, &window, &plan)?;
    for batch in std::mem::take(&mut plan.revokes) {
        take_back(&mut window, batch)?;
    }
    start_anew(&window, &mut plan)?;
    window.requests.progress.clear();
    Ok((window, plan))
}

/// Workers must be there, and have room in their queues.
fn check_rooms(catalog: &Catalog, window: &Window, plan: &Plan) -> Result<(), String> {
    let workers = &window.workers;
    let mut queued = workers.queued.clone();
    for batch in &plan.revokes {
        if let Some(row) = window.placed.batch.iter().position(|id| *id == batch.0) {
            let held = &mut queued[window.placed.worker[row] as usize];
            *held = held.saturating_sub(1);
        }
    }
    for (index, dispatch) in plan.dispatches.iter().enumerate() {
        let w = dispatch.worker.index();
        // A worker that does not exist is for the host's check.
        let Some(spec) = catalog.workers.get(w) else {
            continue;
        };
        let at = format!("dispatches[{index}].worker");
        if workers.up[w] == 0 {
            return Err(format!("{at}: {} is away", spec.name));
        }
        queued[w] += 1;
        if queued[w] > spec.queue_max + u32::from(workers.running_variant[w] == IDLE) {
            return Err(format!(
                "{at}: {} queues at most {} batches",
                spec.name, spec.queue_max
            ));
        }
    }
    Ok(())
}

/// Makes the requests of a queued batch pending again.
fn take_back(window: &mut Window, batch: BatchId) -> Result<(), String> {
    let Window {
        placed, requests, ..
    } = window;
    let rows = (0..placed.id.len()).filter(|&row| {
        placed.batch[row] == batch.0 && placed.state[row] == PlacedState::Queued as u8
    });
    let rows: Vec<usize> = rows.collect();
    if rows.is_empty() {
        return Err(format!("revokes: batch {} is not queued", batch.0));
    }
    for row in rows {
        requests.id.push(placed.id[row]);
        requests.app.push(placed.app[row]);
        requests.arrival.push(placed.arrival[row]);
        requests.deadline.push(placed.deadline[row]);
        requests.priority.push(0);
        requests.min_accuracy.push(0.0);
        // Not twice.
        placed.state[row] = PlacedState::Running as u8;
    }
    Ok(())
}

/// A batch of half-run requests goes on where they are; then it is as good as one that
/// begins. One of fresh requests must begin.
fn start_anew(window: &Window, plan: &mut Plan) -> Result<(), String> {
    let progress = &window.requests.progress;
    let of = |id: RequestId| {
        let at = window.requests.id.iter().position(|other| *other == id.0)?;
        progress
            .iter()
            .find(|progress| progress.index as usize == at)
    };
    let mut members = plan.members.as_slice();
    for (index, dispatch) in plan.dispatches.iter_mut().enumerate() {
        let size = (dispatch.size as usize).min(members.len());
        let (batch, rest) = members.split_at(size);
        members = rest;
        if let Some(id) = batch.iter().find(|id| !goes_on(dispatch, of(**id))) {
            return Err(format!(
                "dispatches[{index}].from-stage: request {} is not there at stage {}",
                id.0, dispatch.from_stage
            ));
        }
        dispatch.from_stage = 0;
    }
    Ok(())
}

fn goes_on(dispatch: &Dispatch, progress: Option<&RequestProgress>) -> bool {
    match progress {
        None => dispatch.from_stage == 0,
        Some(progress) => {
            progress.worker == dispatch.worker
                && progress.variant == dispatch.variant
                && progress.stages_run == dispatch.from_stage
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use switchyard_core::ids::{ExitId, VariantId, WorkerId};
    use switchyard_core::policy::Sights;

    use super::super::{catalog, windows};
    use super::*;

    const ALL: Sights = Sights {
        evidence: true,
        completions: true,
        placed: true,
        residents: true,
    };

    fn named(name: &str) -> Window {
        let cases = windows(&catalog(), ALL);
        cases
            .into_iter()
            .find(|case| case.name == name)
            .unwrap()
            .window
    }

    /// The window's first request, alone, on a worker.
    fn plan_on(window: &Window, worker: u32) -> Plan {
        let mut plan = Plan::default();
        let dispatch = Dispatch {
            worker: WorkerId(worker),
            variant: VariantId(0),
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            place: 0,
            size: 0,
        };
        plan.dispatch(dispatch, [RequestId(window.requests.id[0])]);
        plan
    }

    fn refusal(window: &Window, plan: &Plan) -> String {
        settle(&catalog(), window, plan).err().unwrap_or_default()
    }

    #[test]
    fn a_worker_that_is_away_takes_nothing() {
        let window = named("a worker away");
        assert_eq!(
            refusal(&window, &plan_on(&window, 0)),
            "dispatches[0].worker: a is away"
        );
        assert_eq!(refusal(&window, &plan_on(&window, 1)), "");
    }

    #[test]
    fn a_full_queue_has_room_once_a_batch_is_taken_back() {
        let window = named("queues full");
        let mut plan = plan_on(&window, 0);
        assert!(
            refusal(&window, &plan).contains("a queues at most 8"),
            "{plan:?}"
        );
        let row = window
            .placed
            .state
            .iter()
            .position(|s| *s == PlacedState::Queued as u8)
            .unwrap();
        plan.revokes = vec![BatchId(window.placed.batch[row])];
        let (settled, plan) = settle(&catalog(), &window, &plan).unwrap();
        assert_eq!(settled.len(), window.len() + 1);
        assert_eq!(plan.revokes, []);
    }

    #[test]
    fn only_queued_batches_are_taken_back_and_only_once() {
        let window = named("queues full");
        let revoking = |batches: &[u64]| Plan {
            revokes: batches.iter().map(|&id| BatchId(id)).collect(),
            ..Plan::default()
        };
        assert_eq!(
            refusal(&window, &revoking(&[1])),
            "revokes: batch 1 is not queued",
            "it runs"
        );
        assert_eq!(
            refusal(&window, &revoking(&[2, 2])),
            "revokes: batch 2 is not queued"
        );
        assert_eq!(refusal(&window, &revoking(&[2])), "");
    }

    #[test]
    fn half_run_requests_go_on_where_they_are() {
        let window = named("requests half run");
        let parked = window.requests.progress[0];
        let mut plan = plan_on(&window, parked.worker.0);
        plan.members = vec![RequestId(window.requests.id[parked.index as usize])];
        assert!(refusal(&window, &plan).contains("not there at stage 0"));
        plan.dispatches[0].variant = parked.variant;
        plan.dispatches[0].from_stage = 1;
        plan.dispatches[0].to_stage = 2;
        let (settled, plan) = settle(&catalog(), &window, &plan).unwrap();
        assert_eq!(plan.dispatches[0].from_stage, 0);
        assert!(settled.requests.progress.is_empty());
    }
}
