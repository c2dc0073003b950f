//! One run of a case.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use switchyard_core::planted::Planted;
use switchyard_core::time::Time;

use super::draw::draw;
use super::log::CommandHash;
use super::pool::SoakPool;
use super::step::SoakStep;
use super::violation::{Rule, Violation};
use super::world::{SoakPolicy, World};

/// A pool and its events.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakCase {
    /// The pool.
    pub pool: SoakPool,
    /// The steps, in order.
    pub steps: Vec<SoakStep>,
}

/// How a case is run.
#[derive(Clone, Copy, Default)]
pub struct CaseRun<'a> {
    /// Policies from outside, installed by half of the swaps.
    pub policies: &'a [SoakPolicy],
    /// A defect of the core, in builds with debug assertions.
    pub planted: Option<Planted>,
    /// Whether commands are hashed, to compare two runs.
    pub hashes: bool,
}

/// The counts of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseOutcome {
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Events and wake-ups.
    pub events: u64,
    /// Requests that arrived.
    pub requests: u64,
    /// Their answers.
    pub answers: u64,
    /// Accepted less ended less live requests.
    pub imbalance: i64,
    /// The hash of all commands, if it was asked for.
    pub hash: Option<u64>,
    /// The rule that was broken.
    pub violation: Option<Violation>,
}

// === impl SoakCase ===

impl SoakCase {
    /// The case of a seed.
    pub fn of(seed: u64) -> Self {
        let (pool, steps) = draw(seed);
        Self { pool, steps }
    }

    /// The same pool with some of the steps, by position.
    pub fn kept(&self, keep: &[usize]) -> Self {
        let steps = keep.iter().filter_map(|&at| self.steps.get(at));
        Self {
            pool: self.pool.clone(),
            steps: steps.cloned().collect(),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn check(&self) -> Result<(), Violation> {
        match self.run(CaseRun::default()).violation {
            None => Ok(()),
            Some(violation) => Err(violation),
        }
    }

    /// Runs it up to its end or the first broken rule.
    pub fn run(&self, run: CaseRun<'_>) -> CaseOutcome {
        // The scheduler of a run that panicked is dropped with it.
        let played = catch_unwind(AssertUnwindSafe(|| self.play(run)));
        played.unwrap_or_else(|panic| CaseOutcome {
            violation: Some(Violation::new(Rule::NoPanic, Time::ZERO, message(&*panic))),
            ..CaseOutcome::default()
        })
    }

    fn play(&self, run: CaseRun<'_>) -> CaseOutcome {
        let mut world = match World::try_new(self.pool.clone(), run.policies) {
            Ok(world) => world,
            Err(violation) => {
                return CaseOutcome {
                    violation: Some(violation),
                    ..CaseOutcome::default()
                };
            }
        };
        world.hash = run.hashes.then(CommandHash::new);
        #[cfg(debug_assertions)]
        if let Some(planted) = run.planted {
            world.scheduler.plant(planted);
        }
        let played = self.steps.iter().try_for_each(|step| world.play(step));
        let played = played.and_then(|()| world.end());
        let mut faults = world.faults;
        for (label, count) in world.mischief.counts().filter(|(_, count)| *count > 0) {
            *faults.entry(label).or_default() += count;
        }
        CaseOutcome {
            faults,
            events: world.events,
            requests: world.books.newest,
            answers: world.books.answers,
            imbalance: world.scheduler.imbalance(),
            hash: world.hash.map(CommandHash::value),
            violation: played.err(),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
