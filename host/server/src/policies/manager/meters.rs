//! Series about a pool's policies.

use std::path::Path;

use switchyard_core::policy::FaultKind;

use super::super::report::SwapResult;
use crate::telemetry::{Counter, Gauge, PolicyFaults, Registry, names};

/// All from 0, so that a rate has a first value.
pub(super) struct ManagerMeters {
    swaps: [(SwapResult, Counter); SwapResult::ALL.len()],
    canary_runs: Gauge,
    /// Names the policy that was installed last.
    info: Option<Gauge>,
    /// Faults in trials of the file that is to be switched to, under its name: until a policy is
    /// installed.
    tried: Option<PolicyFaults>,
}

// === impl ManagerMeters ===

impl ManagerMeters {
    /// `file` is the component that is followed.
    pub(super) fn new(registry: &Registry, pool: &str, file: &Path) -> Self {
        let swaps = |result: SwapResult| {
            let labels = [("result", result.label())];
            (result, registry.counter(names::POLICY_SWAPS, labels))
        };
        let policy = file.file_stem().unwrap_or_default().to_string_lossy();
        Self {
            swaps: SwapResult::ALL.map(swaps),
            canary_runs: registry.gauge(names::CANARY_RUNS, [("pool", pool)]),
            info: None,
            tried: Some(PolicyFaults::new(registry, pool, &policy)),
        }
    }

    /// An attempt ended so.
    pub(super) fn count(&self, result: SwapResult) {
        let counter = self.swaps.iter().find(|(of, _)| *of == result);
        if let Some((_, counter)) = counter {
            counter.increment(1);
        }
    }

    pub(super) fn canary_runs(&self, runs: bool) {
        self.canary_runs.set(f64::from(u8::from(runs)));
    }

    /// The policy that is installed, by label and hash; none: only the fallback serves.
    pub(super) fn shows(&mut self, registry: &Registry, pool: &str, active: Option<(&str, &str)>) {
        let (policy, hash) = active.unwrap_or(("none", ""));
        let labels = [("pool", pool), ("policy", policy), ("hash", hash)];
        let info = registry.gauge(names::POLICY_INFO, labels);
        info.set(1.0);
        self.info = Some(info);
    }

    /// A policy was installed: its faults are counted under its own name.
    pub(super) fn installed(&mut self) {
        self.tried = None;
    }

    /// A file of this name failed a window of its trial.
    pub(super) fn tried(&mut self, registry: &Registry, pool: &str, policy: &str, kind: FaultKind) {
        let tried = self.tried.take();
        let tried = tried.filter(|tried| tried.policy() == policy);
        let tried = tried.unwrap_or_else(|| PolicyFaults::new(registry, pool, policy));
        tried.count(kind);
        self.tried = Some(tried);
    }
}
