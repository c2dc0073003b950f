//! INFaaS: load balancing without overloaded instances.

use switchyard_sdk::Window;
use switchyard_sdk::window::PlacedState;

use crate::fleet::Fleet;

/// Equal shares for all instances that can end their requests within a slot; if none can, for all.
pub(crate) fn shares(window: &Window<'_>, fleet: &Fleet, slot_us: u64) -> Vec<f64> {
    let backlogs_us = backlogs_us(window, fleet);
    let is_spared: Vec<bool> = backlogs_us.iter().map(|&us| us > slot_us).collect();
    let all = is_spared.iter().all(|&spared| spared);
    let share = |&spared: &bool| f64::from(u8::from(all || !spared));
    is_spared.iter().map(share).collect()
}

/// The work that each instance holds, in microseconds.
fn backlogs_us(window: &Window<'_>, fleet: &Fleet) -> Vec<u64> {
    let instances = fleet.instances().iter();
    let mut backlogs_us: Vec<u64> = instances
        .map(|i| window.worker(i.worker).free_at_us() - window.now_us())
        .collect();
    for waiting in window.placed() {
        // Queued batches are in `free_at_us` already.
        if waiting.state == PlacedState::Lane {
            for (at, instance) in fleet.instances().iter().enumerate() {
                if instance.worker == waiting.worker {
                    let alone_us = fleet.alone_us(at);
                    backlogs_us[at] = backlogs_us[at].saturating_add(alone_us);
                }
            }
        }
    }
    backlogs_us
}
