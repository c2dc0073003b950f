//! SQ: one queue, whose oldest request goes to an idle instance.

use switchyard_sdk::{PlanBuilder, Window, WorkerId, WorkerRef, host};

use crate::fleet::Fleet;
use crate::settings::Prefer;

/// Gives each idle instance one request.
pub(crate) fn schedule(
    fleet: &Fleet,
    prefer: Prefer,
    window: &Window<'_>,
    plan: &mut PlanBuilder<'_>,
) {
    // Longest idle first.
    let idle = window.idle_workers();
    let idle = idle.iter().map(WorkerRef::id);
    let is_free = |worker: &WorkerId| plan.batches_on(*worker) == 0;
    let mut idle: Vec<usize> = idle
        .filter(is_free)
        .filter_map(|worker| fleet.instances().iter().position(|i| i.worker == worker))
        .collect();
    for request in window.fresh_of(fleet.app) {
        if idle.is_empty() {
            return;
        }
        let chosen = idle.remove(next(fleet, prefer, &idle));
        let instance = fleet.instances()[chosen];
        plan.run(instance.worker, instance.variant)
            .requests([request]);
    }
}

/// The idle instance that serves next, as an index into `idle`.
fn next(fleet: &Fleet, prefer: Prefer, idle: &[usize]) -> usize {
    let heavy = idle.iter().position(|&at| fleet.is_heavy(at));
    let is_last_pair = idle.len() == 2 && idle.iter().any(|&at| !fleet.is_heavy(at));
    match (prefer, heavy) {
        (Prefer::Heavy, heavy) => heavy.unwrap_or(0),
        (Prefer::LastPair, Some(heavy)) if is_last_pair => heavy,
        (Prefer::LastPair, _) => (host::random_f64() * idle.len() as f64) as usize,
    }
}
