//! Faults of one policy in one pool, by kind.

use switchyard_core::policy::FaultKind;

use super::meters::Counter;
use super::names;
use super::registry::Registry;

/// All kinds from 0, so that a rate has a first value.
pub(crate) struct PolicyFaults {
    policy: String,
    kinds: [(FaultKind, Counter); FaultKind::ALL.len()],
}

// === impl PolicyFaults ===

impl PolicyFaults {
    pub(crate) fn new(registry: &Registry, pool: &str, policy: &str) -> Self {
        let counter = |kind: FaultKind| {
            let labels = [("pool", pool), ("policy", policy), ("kind", kind.label())];
            (kind, registry.counter(names::POLICY_FAULTS, labels))
        };
        Self {
            policy: policy.to_owned(),
            kinds: FaultKind::ALL.map(counter),
        }
    }

    pub(crate) fn policy(&self) -> &str {
        &self.policy
    }

    pub(crate) fn count(&self, kind: FaultKind) {
        if let Some((_, counter)) = self.kinds.iter().find(|(of, _)| *of == kind) {
            counter.increment(1);
        }
    }
}
