//! HW-E: the heavy variant on all workers; requests that will be late are rejected.

use switchyard_sdk::instances::Instance;
use switchyard_sdk::window::PlacedState;
use switchyard_sdk::{BatchId, PlanBuilder, Window, WorkerRef, host};

use crate::fleet::Fleet;
use crate::settings::RoutingSettings;

/// The queue of a worker. The instances of all apps on the worker share it.
struct WorkerQueue {
    /// When it is empty, on the host's clock.
    ends_us: u64,
    /// Requests it holds, with the one in service.
    held: u32,
}

/// Revokes and rejects queued requests that will be late. Then draws an instance for each arrival:
/// the arrival joins the queue of the instance's worker or is rejected.
pub(crate) fn schedule<'f>(
    fleets: impl Iterator<Item = &'f Fleet> + Clone,
    settings: &RoutingSettings,
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
) {
    let mut queues = queues(fleets.clone(), window, plan);
    for fleet in fleets {
        place(fleet, &mut queues, settings, window, plan);
    }
}

/// The queue of each worker after its late requests were revoked. Workers without an instance keep
/// their requests.
fn queues<'f>(
    fleets: impl Iterator<Item = &'f Fleet>,
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
) -> Vec<WorkerQueue> {
    let mut queues: Vec<WorkerQueue> = window.workers().map(WorkerQueue::new).collect();
    let mut serves = vec![false; queues.len()];
    for instance in fleets.flat_map(Fleet::instances) {
        serves[instance.worker.index()] = true;
    }
    let queued = window
        .placed()
        .filter(|p| p.state == PlacedState::Queued && serves[p.worker.index()]);
    for waiting in queued {
        let queue = &mut queues[waiting.worker.index()];
        let instance = Instance {
            worker: waiting.worker,
            variant: waiting.variant,
        };
        let ends_us = queue
            .ends_us
            .saturating_add(instance.alone_us(window.catalog()));
        if ends_us > waiting.deadline_us
            && let Some(batch) = alone(window, waiting.batch)
        {
            plan.revoke(waiting.worker, batch);
            plan.reject(waiting.id);
        } else {
            queue.ends_us = ends_us;
            queue.held += 1;
        }
    }
    queues
}

/// Places the arrivals of one app.
fn place(
    fleet: &Fleet,
    queues: &mut [WorkerQueue],
    settings: &RoutingSettings,
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
) {
    let up: Vec<usize> = (0..fleet.len())
        .filter(|&at| window.worker(fleet.instances()[at].worker).is_up())
        .collect();
    if up.is_empty() {
        return;
    }
    for request in window.fresh_of(fleet.app) {
        let at = up[(host::random_f64() * up.len() as f64) as usize];
        let instance = fleet.instances()[at];
        let queue = &mut queues[instance.worker.index()];
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

/// The batch, if it has one request. In a larger batch, of an earlier policy, others are in time.
fn alone(window: &Window<'_>, batch: Option<BatchId>) -> Option<BatchId> {
    let members = window.placed().filter(|placed| placed.batch == batch);
    batch.filter(|_| members.count() == 1)
}

// === impl WorkerQueue ===

impl WorkerQueue {
    /// The queue with the request in service only.
    fn new(worker: WorkerRef<'_>) -> Self {
        Self {
            ends_us: worker.busy_until_us(),
            held: u32::from(worker.running_variant().is_some()),
        }
    }
}
