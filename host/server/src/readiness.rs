//! Whether a pool serves requests now, and the reason if not.

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

/// The conditions that keep a pool from being ready. Shared by the threads that start the pool and
/// the readiness probes.
#[derive(Debug)]
pub struct Readiness {
    pool: String,
    waiting: Mutex<BTreeMap<Awaited, String>>,
}

// === impl Readiness ===

impl Readiness {
    /// Of the pool of this name, which waits for nothing.
    pub fn new(pool: &str) -> Self {
        Self {
            pool: pool.to_owned(),
            waiting: Mutex::default(),
        }
    }

    /// The pool waits for a condition; probes answer with the reason.
    pub fn wait_for(&self, awaited: Awaited, reason: impl Into<String>) {
        self.lock().insert(awaited, reason.into());
    }

    /// The condition holds.
    pub fn arrived(&self, awaited: Awaited) {
        self.lock().remove(&awaited);
    }

    /// Whether the pool is ready.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self) -> Result<(), String> {
        match self.lock().values().next() {
            Some(reason) => Err(format!("pool {}: {reason}", self.pool)),
            None => Ok(()),
        }
    }

    /// Whether it still waits for this condition.
    pub(crate) fn waits_for(&self, awaited: Awaited) -> bool {
        self.lock().contains_key(&awaited)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Awaited, String>> {
        // The map is whole at every point where a panic could strike.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_nothing_is_awaited_any_more() {
        let readiness = Readiness::new("a");
        readiness.wait_for(Awaited::Models, "models are being loaded");
        readiness.wait_for(Awaited::Policy, "no policy yet");
        readiness.arrived(Awaited::Models);
        assert_eq!(readiness.check(), Err("pool a: no policy yet".to_owned()));
        assert!(readiness.waits_for(Awaited::Policy));
        readiness.arrived(Awaited::Policy);
        assert_eq!(readiness.check(), Ok(()));
    }
}
