//! HW-E: the heavy variant on all workers; requests that will be late are rejected.

use switchyard_sdk::window::PlacedState;
use switchyard_sdk::{BatchId, PlanBuilder, Window, host};

use crate::fleet::Fleet;
use crate::settings::RoutingSettings;

/// The queue of an instance.
struct InstanceQueue {
    /// When it is empty, on the host's clock.
    ends_us: u64,
    /// Requests it holds, with the one in service.
    held: u32,
}

/// Revokes and rejects queued requests that will be late, then draws an instance for each arrival,
/// which joins its queue or is rejected.
pub(crate) fn schedule(
    fleet: &Fleet,
    settings: &RoutingSettings,
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
) {
    let mut queues: Vec<InstanceQueue> = (0..fleet.len())
        .map(|at| queue_of(fleet, at, window, plan))
        .collect();
    let up: Vec<usize> = (0..fleet.len())
        .filter(|&at| window.worker(fleet.instances()[at].worker).is_up())
        .collect();
    if up.is_empty() {
        return;
    }
    for request in window.fresh_of(fleet.app) {
        let at = up[(host::random_f64() * up.len() as f64) as usize];
        let (instance, queue) = (fleet.instances()[at], &mut queues[at]);
        let ends_us = queue.ends_us.saturating_add(fleet.alone_us(at));
        let is_full = queue.held >= settings.capacity || plan.room(instance.worker) == 0;
        if is_full || ends_us > request.deadline_us() {
            plan.reject(request);
        } else {
            plan.run(instance.worker, instance.variant)
                .requests([request]);
            queue.held += 1;
            queue.ends_us = ends_us;
        }
    }
}

/// The queue of an instance after its late requests were revoked.
fn queue_of(
    fleet: &Fleet,
    at: usize,
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
) -> InstanceQueue {
    let worker = fleet.instances()[at].worker;
    let state = window.worker(worker);
    let mut queue = InstanceQueue {
        ends_us: state.busy_until_us().max(window.now_us()),
        held: u32::from(state.running_variant().is_some()),
    };
    let queued = window
        .placed()
        .filter(|p| p.worker == worker && p.state == PlacedState::Queued);
    for waiting in queued {
        let ends_us = queue.ends_us.saturating_add(fleet.alone_us(at));
        if ends_us > waiting.deadline_us
            && let Some(batch) = alone(window, waiting.batch)
        {
            plan.revoke(worker, batch);
            plan.reject(waiting.id);
        } else {
            queue.ends_us = ends_us;
            queue.held += 1;
        }
    }
    queue
}

/// The batch, if it has one request. In a larger batch, of an earlier policy, others are in time.
fn alone(window: &Window<'_>, batch: Option<BatchId>) -> Option<BatchId> {
    let members = window.placed().filter(|placed| placed.batch == batch);
    batch.filter(|_| members.count() == 1)
}
