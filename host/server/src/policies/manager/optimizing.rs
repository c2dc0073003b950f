//! The optimised code of a policy that serves in baseline code.

use std::thread;

use crossbeam_channel::{Receiver, bounded};
use switchyard_policy::loader::LoadError;
use switchyard_policy::{CodeTier, PolicyVersion};

use super::{Manager, Ready};
use crate::driver::Message;
use crate::policies::handle::{SwapError, lock};

/// A compilation under way.
pub(super) struct Optimizing {
    version: PolicyVersion,
    ended: Receiver<Result<(), LoadError>>,
}

// === impl Optimizing ===

impl Optimizing {
    pub(super) fn ended(&self) -> Receiver<Result<(), LoadError>> {
        self.ended.clone()
    }
}

// === impl Manager ===

impl Manager {
    /// Has the version that serves optimised, if it runs in baseline code.
    pub(super) fn optimize(&mut self, version: &PolicyVersion, code: CodeTier) {
        self.optimizing = None;
        if code == CodeTier::Optimized {
            return;
        }
        let (end, ended) = bounded(1);
        let (loader, of) = (self.loader.clone(), version.clone());
        // Not joined: a stop of the loader ends it.
        let spawned = thread::Builder::new()
            .name("policy-optimize".to_owned())
            .spawn(move || {
                // An error means that another policy serves.
                let _ = end.send(loader.optimize(&of));
            });
        match spawned {
            Ok(_) => {
                let version = version.clone();
                self.optimizing = Some(Optimizing { version, ended });
            }
            Err(error) => self.stays(version, &error.to_string()),
        }
    }

    /// The compilation ended: the optimised code takes the place of the other.
    pub(super) fn optimized(&mut self, ended: Option<Result<(), LoadError>>) {
        let Some(Optimizing { version, .. }) = self.optimizing.take() else {
            return;
        };
        let is_active = lock(&self.status)
            .active
            .as_ref()
            .is_some_and(|active| active.hash == version.hash.to_hex());
        // A canary has loaded the policy again.
        if !is_active || self.canary.is_some() {
            return;
        }
        let result = match ended {
            Some(Ok(())) => self.replace(&version),
            Some(Err(error)) => Err(SwapError::from(Box::new(error))),
            None => return self.stays(&version, "the compiler panicked"),
        };
        match result {
            Ok(()) => lock(&self.status).code = CodeTier::Optimized,
            Err(SwapError::Stopped) => {}
            Err(error) => self.stays(&version, &error.to_string()),
        }
    }

    fn replace(&self, version: &PolicyVersion) -> Result<(), SwapError> {
        let Ready {
            policy,
            record,
            report,
            ..
        } = self.ready(|trial| self.loader.load_version(version, trial))?;
        let switch = self.send(|done| Message::Recompiled(policy, record, done))?;
        tracing::info!(
            pool = self.pool.name(),
            policy = version.label,
            hash = %version.hash,
            validate_us = report.validate_us,
            switch_us = switch.0,
            "policy optimised",
        );
        Ok(())
    }

    fn stays(&self, version: &PolicyVersion, reason: &str) {
        let (pool, policy) = (self.pool.name(), &version.label);
        tracing::warn!(pool, policy, reason, "policy stays in baseline code");
    }
}
