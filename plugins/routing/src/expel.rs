//! HW-E: the heavy variant everywhere, without those requests that will be late.

use switchyard_sdk::window::PlacedState;
use switchyard_sdk::{BatchId, PlanBuilder, Window, host};

use crate::fleet::Fleet;
use crate::settings::Settings;

/// An instance's own queue.
struct Line {
    /// When it has done all that it holds, on the host's clock.
    ends_us: u64,
    /// Requests it holds, the one in service included.
    held: u32,
}

/// Takes buffered requests back that will miss their deadline, then draws an instance for each
/// arrival, which joins its queue or is refused.
pub(crate) fn schedule(
    fleet: &Fleet,
    settings: &Settings,
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
) {
    let mut lines: Vec<Line> = (0..fleet.len())
        .map(|at| line(fleet, at, window, plan))
        .collect();
    let up: Vec<usize> = (0..fleet.len())
        .filter(|&at| window.worker(fleet.instances()[at].worker).is_up())
        .collect();
    if up.is_empty() {
        return;
    }
    for request in window.fresh_of(fleet.app) {
        let at = up[(host::random_f64() * up.len() as f64) as usize];
        let (instance, line) = (fleet.instances()[at], &mut lines[at]);
        let ends_us = line.ends_us.saturating_add(fleet.alone_us(at));
        let is_full = line.held >= settings.capacity || plan.room(instance.worker) == 0;
        if is_full || ends_us > request.deadline_us() {
            plan.reject(request);
        } else {
            plan.run(instance.worker, instance.variant)
                .requests([request]);
            line.held += 1;
            line.ends_us = ends_us;
        }
    }
}

/// What an instance holds, once it has given back what will be late.
fn line(fleet: &Fleet, at: usize, window: &Window<'_>, plan: &mut PlanBuilder<'_>) -> Line {
    let worker = fleet.instances()[at].worker;
    let state = window.worker(worker);
    let mut line = Line {
        ends_us: state.busy_until_us().max(window.now_us()),
        held: u32::from(state.running_variant().is_some()),
    };
    let queued = window
        .placed()
        .filter(|p| p.worker == worker && p.state == PlacedState::Queued);
    for waiting in queued {
        let ends_us = line.ends_us.saturating_add(fleet.alone_us(at));
        if ends_us > waiting.deadline_us
            && let Some(batch) = alone(window, waiting.batch)
        {
            plan.revoke(worker, batch);
            plan.reject(waiting.id);
        } else {
            line.ends_us = ends_us;
            line.held += 1;
        }
    }
    line
}

/// The batch, if it is of one request: of a larger one, made by a policy before, others are in
/// time.
fn alone(window: &Window<'_>, batch: Option<BatchId>) -> Option<BatchId> {
    let members = window.placed().filter(|placed| placed.batch == batch);
    batch.filter(|_| members.count() == 1)
}
