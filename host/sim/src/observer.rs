//! Observers of a run, for timelines and checks.

use std::sync::Arc;

use switchyard_core::decision::Decision;
use switchyard_core::event::{Launch, Notice, Reply};
use switchyard_core::ids::WorkerId;
use switchyard_core::time::Time;

use crate::hardware::BatchCost;

/// Is called during a run; by default every method does nothing.
pub trait Observer {
    /// A batch starts.
    fn ran(&mut self, now: Time, launch: &Launch, cost: BatchCost) {
        let _ = (now, launch, cost);
    }

    /// A request ends.
    fn ended(&mut self, now: Time, reply: &Reply) {
        let _ = (now, reply);
    }

    /// A window was decided. Called only if the scenario's scheduler
    /// [tells decisions](switchyard_core::SchedulerConfig::tells_decisions).
    fn decided(&mut self, decision: &Arc<Decision>) {
        let _ = decision;
    }

    /// A worker goes away.
    fn lost(&mut self, now: Time, worker: WorkerId) {
        let _ = (now, worker);
    }

    /// A message for the operator, such as a policy's fault.
    fn noticed(&mut self, notice: &Notice) {
        let _ = notice;
    }
}

/// Observes nothing.
impl Observer for () {}

impl<O: Observer> Observer for &mut O {
    fn ran(&mut self, now: Time, launch: &Launch, cost: BatchCost) {
        (**self).ran(now, launch, cost);
    }

    fn ended(&mut self, now: Time, reply: &Reply) {
        (**self).ended(now, reply);
    }

    fn decided(&mut self, decision: &Arc<Decision>) {
        (**self).decided(decision);
    }

    fn lost(&mut self, now: Time, worker: WorkerId) {
        (**self).lost(now, worker);
    }

    fn noticed(&mut self, notice: &Notice) {
        (**self).noticed(notice);
    }
}
