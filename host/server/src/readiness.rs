//! Whether each pool serves requests now, and the reason if not.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A condition that a pool waits for before it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// The loads of its start have not ended.
    Models,
    /// Its policy is not serving yet.
    Policy,
    /// None of its workers is up.
    Worker,
    /// Its scheduler has failed; only a restart brings it back.
    Restart,
}

/// The conditions that keep each pool from being ready. Shared by the threads that start pools and
/// the readiness probes.
#[derive(Debug, Default)]
pub struct Readiness {
    waiting: Mutex<BTreeMap<(String, Awaited), String>>,
}

// === impl Readiness ===

impl Readiness {
    /// The pool waits for a condition; probes answer with the reason.
    pub fn wait_for(&self, pool: &str, awaited: Awaited, reason: impl Into<String>) {
        self.lock()
            .insert((pool.to_owned(), awaited), reason.into());
    }

    /// The condition holds.
    pub fn arrived(&self, pool: &str, awaited: Awaited) {
        self.lock().remove(&(pool.to_owned(), awaited));
    }

    /// Whether every pool is ready.
    ///
    /// # Errors
    /// The first pool that is not, and why.
    pub fn server(&self) -> Result<(), String> {
        match self.lock().iter().next() {
            Some(((pool, _), reason)) => Err(format!("pool {pool}: {reason}")),
            None => Ok(()),
        }
    }

    /// Whether one pool is ready.
    ///
    /// # Errors
    /// Why it is not.
    pub fn pool(&self, pool: &str) -> Result<(), String> {
        match self.lock().iter().find(|((name, _), _)| name == pool) {
            Some((_, reason)) => Err(format!("pool {pool}: {reason}")),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, Awaited), String>> {
        // The map is whole at every point where a panic could strike.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_nothing_is_awaited_any_more() {
        let readiness = Readiness::default();
        readiness.wait_for("a", Awaited::Models, "models are being loaded");
        readiness.wait_for("a", Awaited::Policy, "no policy yet");
        readiness.arrived("a", Awaited::Models);
        assert_eq!(readiness.server(), Err("pool a: no policy yet".to_owned()));
        assert_eq!(readiness.pool("b"), Ok(()));
        readiness.arrived("a", Awaited::Policy);
        assert_eq!(readiness.server(), Ok(()));
    }
}
