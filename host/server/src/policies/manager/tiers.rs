//! The optimised code of a policy that serves in baseline code.

use switchyard_policy::loader::LoadError;
use switchyard_policy::{CodeTier, PolicyVersion};

use super::{Manager, Ready};
use crate::driver::Message;
use crate::policies::handle::{SwapError, lock};
use crate::policies::optimizing::Optimizing;

impl Manager {
    /// Has the version that serves optimised, if it runs in baseline code.
    pub(super) fn optimize(&mut self, version: &PolicyVersion, code: CodeTier) {
        self.optimizing = None;
        if code == CodeTier::Optimized {
            return;
        }
        match Optimizing::start(self.loader.clone(), version) {
            Ok(optimizing) => self.optimizing = Some(optimizing),
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
