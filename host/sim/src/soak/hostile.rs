//! Policies that misbehave, one kind each.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::RequestId;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{
    Description, FaultKind, Policy, PolicyFault, Triggers, WindowFields,
};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;

use super::mischief::{Act, Mischief};
use super::{plans, shown};

/// The time after which a server cuts a call.
const BUDGET: Micros = Micros::from_millis(5);

/// A kind of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// The native fallback, installed as a policy.
    Native,
    /// Valid plans that are far from good.
    Clumsy,
    /// A mix of all misbehaviours.
    Mixed,
    /// Traps in some windows.
    Trapping,
    /// Is cut at the end of its budget in some windows.
    Stalling,
    /// Uses nearly all of its budget.
    Dawdling,
    /// Names requests, batches, workers and weights from anywhere.
    Lying,
    /// Never decides.
    Silent,
    /// Routes arrivals into lanes that wait for many more.
    Hoarding,
    /// Runs first stages, and never the others.
    Parking,
    /// Takes back all that it placed, and replaces routes in every window.
    Fickle,
    /// Rejects every request.
    Refusing,
    /// Asks for the next window at once or in the past.
    Nagging,
    /// Fails to take some catalogs, and to save or restore its state.
    Failing,
}

/// A policy of one kind.
pub(super) struct Hostile {
    kind: PolicyKind,
    description: Description,
    random: Pcg64,
    catalog: Catalog,
    mischief: Mischief,
}

// === impl PolicyKind ===

impl PolicyKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Native,
        Self::Clumsy,
        Self::Mixed,
        Self::Trapping,
        Self::Stalling,
        Self::Dawdling,
        Self::Lying,
        Self::Silent,
        Self::Hoarding,
        Self::Parking,
        Self::Fickle,
        Self::Refusing,
        Self::Nagging,
        Self::Failing,
    ];
}

// === impl Hostile ===

impl Hostile {
    pub(super) fn new(kind: PolicyKind, seed: u64, catalog: &Catalog, mischief: Mischief) -> Self {
        let mut random = Pcg64::seed_from_u64(seed);
        Self {
            kind,
            description: Description {
                name: format!("{kind:?}-{seed}"),
                version: "1".to_owned(),
                every: random.random_bool(0.3).then_some(Micros(3_000)),
                when_empty: random.random_bool(0.3),
                on: Triggers {
                    arrival: random.random_bool(0.7),
                    worker_idle: random.random_bool(0.7),
                    completion: random.random_bool(0.5),
                    evidence: random.random_bool(0.5),
                },
                wants: WindowFields {
                    evidence: random.random_bool(0.5),
                    completions: random.random_bool(0.5),
                    placed: true,
                    residents: random.random_bool(0.5),
                },
                ..Description::default()
            },
            random,
            catalog: catalog.clone(),
            mischief,
        }
    }

    fn fails(&mut self, of: u32) -> Result<(), PolicyFault> {
        if self.kind == PolicyKind::Failing && self.random.random_ratio(1, of) {
            self.mischief.note(Act::FailsCalls);
            return Err(PolicyFault::new(FaultKind::Failed, "made to"));
        }
        Ok(())
    }

    fn sensible(&mut self, window: &Window, plan: &mut Plan) {
        plans::sensible(&mut self.random, &self.catalog, window, plan);
    }

    /// The kind of this window.
    fn drawn(&mut self) -> PolicyKind {
        match self.kind {
            PolicyKind::Mixed => {
                let at = self.random.random_range(1..PolicyKind::ALL.len());
                PolicyKind::ALL[at]
            }
            kind => kind,
        }
    }

    fn decide(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let often = self.random.random_bool(0.6);
        match self.drawn() {
            PolicyKind::Native | PolicyKind::Clumsy | PolicyKind::Mixed | PolicyKind::Failing => {
                self.sensible(window, plan);
            }
            PolicyKind::Trapping if often => {
                self.mischief.note(Act::Traps);
                return Err(PolicyFault::new(FaultKind::Trap, "made to"));
            }
            PolicyKind::Stalling if often => {
                self.mischief.note(Act::Stalls);
                self.mischief.take(BUDGET);
                return Err(PolicyFault::new(FaultKind::Overrun, "made to"));
            }
            PolicyKind::Dawdling => {
                self.mischief.note(Act::Dawdles);
                self.mischief
                    .take(Micros(self.random.random_range(1_000..BUDGET.0)));
                self.sensible(window, plan);
            }
            PolicyKind::Lying if often => {
                self.mischief.note(Act::Lies);
                plans::nonsense(&mut self.random, &self.catalog, window, plan);
            }
            PolicyKind::Trapping | PolicyKind::Stalling | PolicyKind::Lying => {
                self.sensible(window, plan);
            }
            PolicyKind::Silent => self.mischief.note(Act::Hoards),
            PolicyKind::Hoarding => {
                self.mischief.note(Act::Hoards);
                let min_batch = self.random.random_range(4..=8);
                let route = plans::route(&mut self.random, &self.catalog, min_batch);
                plan.routes.push(route);
            }
            PolicyKind::Parking => {
                self.mischief.note(Act::Hoards);
                plans::park(&self.catalog, window, plan);
            }
            PolicyKind::Fickle => {
                self.mischief.note(Act::ChangesItsMind);
                self.sensible(window, plan);
                plans::revoke(&mut self.random, window, plan, 1);
                if often {
                    let route = plans::route(&mut self.random, &self.catalog, 2);
                    plan.routes.push(route);
                }
            }
            PolicyKind::Refusing => {
                self.mischief.note(Act::Refuses);
                let all = window.requests.id.iter().map(|&id| RequestId(id));
                plan.rejects.extend(all);
            }
            PolicyKind::Nagging => {
                self.mischief.note(Act::Nags);
                let wake = self.random.random_range(0..window.now.0 + 300);
                plan.wake = self.random.random_bool(0.8).then_some(Time(wake));
                if often {
                    self.sensible(window, plan);
                }
            }
        }
        Ok(())
    }
}

impl Policy for Hostile {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.catalog.clone_from(catalog);
        self.fails(3)
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        if let Some(detail) = shown::mistake(window, &self.catalog) {
            self.mischief
                .accuse(format!("window {}: {detail}", window.id));
        }
        self.decide(window, plan)
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        self.fails(2)?;
        Ok(vec![self.kind as u8; 3])
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), PolicyFault> {
        self.fails(2)
    }
}
