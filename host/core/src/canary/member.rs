//! One policy of a canary, with its trigger and its faults.

use std::sync::Arc;

use super::split::Split;
use crate::catalog::Catalog;
use crate::plan::{Plan, check_window};
use crate::policy::{Description, EarliestDeadlineFirst, FaultKind, Policy, PolicyFault};
use crate::time::Time;
use crate::trigger::{Pending, Trigger};
use crate::window::{Causes, Window};

/// One policy.
pub(super) struct MemberPolicy {
    pub(super) label: Arc<str>,
    policy: Box<dyn Policy>,
    trigger: Trigger,
    pub(super) faults: u64,
    pub(super) last_fault: Option<String>,
    /// Its plan of this window.
    pub(super) plan: Plan,
}

// === impl MemberPolicy ===

impl MemberPolicy {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self {
            label: policy.description().label().into(),
            policy,
            trigger: Trigger::default(),
            faults: 0,
            last_fault: None,
            plan: Plan::default(),
        }
    }

    pub(super) fn description(&self) -> &Description {
        self.policy.description()
    }

    pub(super) fn policy(&mut self) -> &mut dyn Policy {
        &mut *self.policy
    }

    /// Begins its periods.
    pub(super) fn begin(&mut self, now: Time) {
        self.trigger.restart(now, self.policy.description());
    }

    /// The next time at which it wants a window.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.trigger.next_time()
    }

    /// The causes for which it wants this window, if any.
    pub(super) fn wants(&mut self, whole: &Window, part: &Window) -> Option<Causes> {
        let happened = self.trigger.happened();
        let because = whole.because;
        happened.arrival |= because.arrival;
        happened.completion |= because.completion;
        happened.evidence |= because.evidence;
        happened.changed |= because.changed;
        happened.workers |= because.workers;
        happened.worker_idle = because.worker_idle;
        let description = self.policy.description();
        self.trigger.tick(whole.now, description);
        let idle = part.is_empty() && part.completions.is_empty();
        let pending = if idle { Pending::Idle } else { Pending::Some };
        let because = self.trigger.take(whole.now, description, pending)?;
        // Without anything of its own in the pool there is nothing to decide.
        let is_empty = idle && part.placed.id.is_empty();
        (!is_empty || because.periodic || because.changed).then_some(because)
    }

    /// Asks it about its part of a window, and checks its plan against that.
    ///
    /// # Errors
    /// Its fault, counted. Its plan is empty then.
    pub(super) fn ask(&mut self, split: &Split, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.plan.clear();
        let result = self.policy.schedule(&split.part, &mut self.plan);
        let checked = result.and_then(|()| {
            check_window(&split.part, catalog, &self.plan)
                .map_err(|error| PolicyFault::new(FaultKind::Refused, error.to_string()))
        });
        match &checked {
            Ok(()) => self.trigger.set_wake(split.part.now, self.plan.wake),
            Err(fault) => {
                self.charge(fault);
                self.plan.clear();
            }
        }
        checked
    }

    /// Gives the policy's memory back: it is not asked again.
    pub(super) fn let_go(&mut self) {
        self.policy = Box::new(EarliestDeadlineFirst::default());
    }

    /// Counts a fault.
    pub(super) fn charge(&mut self, fault: &PolicyFault) {
        self.faults += 1;
        self.last_fault = Some(fault.to_string());
    }
}

impl std::fmt::Debug for MemberPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label)
    }
}
