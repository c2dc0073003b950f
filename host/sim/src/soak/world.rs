//! The world of a case: a scheduler with its workers and clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::Scheduler;
use switchyard_core::canary::CanaryWatch;
use switchyard_core::ids::WorkerId;
use switchyard_core::policy::{EarliestDeadlineFirst, Policy};
use switchyard_core::time::Time;

use super::bench::Bench;
use super::books::Books;
use super::hostile::PolicyKind;
use super::log::CommandHash;
use super::mischief::Mischief;
use super::pool::SoakPool;
use super::violation::{Rule, Violation};
use crate::runner::PolicyFactory;

/// A policy from outside, such as a component.
#[derive(Clone)]
pub struct SoakPolicy {
    /// Its name.
    pub name: String,
    /// Makes and configures an instance.
    pub make: PolicyFactory,
}

/// A canary that has not been ended, and the policies of its members.
#[derive(Debug)]
pub(super) struct OpenCanary {
    pub(super) watch: CanaryWatch,
    pub(super) serving: PolicyKind,
    pub(super) candidate: PolicyKind,
}

/// A scheduler with its workers and clients.
pub(super) struct World<'a> {
    pub(super) scheduler: Scheduler,
    pub(super) now: Time,
    pub(super) pool: SoakPool,
    pub(super) policies: &'a [SoakPolicy],
    pub(super) benches: Vec<Bench>,
    pub(super) books: Books,
    pub(super) mischief: Mischief,
    pub(super) canary: Option<OpenCanary>,
    /// No batch ends any more.
    pub(super) is_dead: bool,
    /// Since when all workers that are up run nothing.
    pub(super) idle_since: Option<Time>,
    pub(super) hash: Option<CommandHash>,
    pub(super) events: u64,
    /// Label of the native fallback.
    pub(super) native: String,
    pub(super) faults: BTreeMap<&'static str, u64>,
}

// === impl World ===

impl<'a> World<'a> {
    /// # Errors
    /// The pool's catalog is refused: a defect of the soak.
    pub(super) fn try_new(pool: SoakPool, policies: &'a [SoakPolicy]) -> Result<Self, Violation> {
        let catalog = Arc::new(pool.catalog());
        let scheduler = Scheduler::try_new(catalog, pool.config());
        let scheduler = scheduler
            .map_err(|error| Violation::new(Rule::NoPanic, Time::ZERO, error.to_string()))?;
        Ok(Self {
            scheduler,
            now: Time::ZERO,
            benches: (0..pool.workers).map(|_| Bench::new()).collect(),
            pool,
            policies,
            books: Books::default(),
            mischief: Mischief::default(),
            canary: None,
            is_dead: false,
            idle_since: None,
            hash: None,
            events: 0,
            native: EarliestDeadlineFirst::default().description().label(),
            faults: BTreeMap::new(),
        })
    }

    pub(super) fn worker_ids(&self) -> impl Iterator<Item = WorkerId> + use<> {
        (0..self.benches.len() as u32).map(WorkerId)
    }
}
