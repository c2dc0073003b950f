//! The end of each attempt: in the log, the counts, the status and the history.

use std::path::Path;

use switchyard_core::policy::FaultKind;
use switchyard_policy::loader::LoadCause;

use super::{Manager, Switched};
use crate::driver::Message;
use crate::policies::handle::{SwapError, lock};
use crate::policies::report::{Swap, SwapResult, Version};
use crate::readiness::Awaited;

impl Manager {
    /// Logs, counts and keeps the result of an attempt.
    pub(super) fn settle(
        &mut self,
        file: &Path,
        result: SwapResult,
        (by, reason): (&str, &str),
        attempt: Result<Switched, SwapError>,
    ) -> Result<Swap, SwapError> {
        let pool = self.pool.name();
        let at = self.pool.clock().now();
        match attempt {
            Ok(switched) => {
                let Switched {
                    version,
                    report,
                    switch,
                } = switched;
                let version = self.kept.keep(version);
                let swap = Swap {
                    by: by.to_owned(),
                    reason: reason.to_owned(),
                    file: file.display().to_string(),
                    ..Swap::done(result, at, &version, &report, switch)
                };
                tracing::info!(
                    pool,
                    by,
                    file = %file.display(),
                    policy = swap.policy,
                    hash = swap.hash,
                    compile_us = swap.compile_us,
                    cached = swap.cached,
                    code = ?swap.code,
                    validate_us = swap.validate_us,
                    windows = swap.windows,
                    switch_us = swap.switch_us,
                    reason,
                    "policy {}", result.label(),
                );
                self.superseded();
                let active = (version.label.as_str(), &*version.hash.to_string());
                self.shows(Some(active));
                self.meters.installed();
                self.pool.readiness().arrived(Awaited::Policy);
                self.meters.count(result);
                self.history.push(version.clone());
                self.optimize(&version, report.code);
                let mut status = lock(&self.status);
                status.switched(swap.clone(), &version);
                status.history = self.history.iter().map(Version::from).collect();
                drop(status);
                self.active.send_replace(Some(version.hash.to_hex()));
                Ok(swap)
            }
            Err(error) => self.refused(file, by, error),
        }
    }

    /// Logs, counts and keeps the failure of an attempt.
    pub(super) fn refused(
        &mut self,
        file: &Path,
        by: &str,
        error: SwapError,
    ) -> Result<Swap, SwapError> {
        if matches!(error, SwapError::Stopped) {
            return Err(error);
        }
        let (pool, at) = (self.pool.name(), self.pool.clock().now());
        let file_shown = file.display();
        match lock(&self.status).active {
            Some(_) => {
                tracing::error!(pool, file = %file_shown, %error, "policy refused: the old one serves on");
            }
            None if self.is_fallback_wanted(&error) => {}
            None => {
                tracing::error!(pool, file = %file_shown, %error, "policy refused: the fallback serves");
            }
        }
        self.count_fault(file, &error);
        self.meters.count(SwapResult::Refused);
        lock(&self.status).tried(Swap {
            by: by.to_owned(),
            ..Swap::refused(at, file, &error.to_string())
        });
        Err(error)
    }

    pub(super) fn removed(&mut self, file: &Path) {
        let pool = self.pool.name();
        tracing::error!(pool, file = %file.display(), "policy file removed: the fallback serves");
        self.pool.send(Message::RemovePolicy);
        self.superseded();
        self.shows(None);
        self.meters.count(SwapResult::Removed);
        let swap = Swap::removed(self.pool.clock().now(), file);
        lock(&self.status).removed(swap);
        self.active.send_replace(None);
    }

    /// Counts a window that failed in the trial with the faults of windows that were served.
    fn count_fault(&mut self, file: &Path, error: &SwapError) {
        let SwapError::Load(error) = error else {
            return;
        };
        let kind = match &error.cause {
            LoadCause::Window { fault, .. } => fault.kind,
            LoadCause::Plan { .. } => FaultKind::Refused,
            _ => return,
        };
        let policy = file.file_stem().unwrap_or_default().to_string_lossy();
        let (registry, pool) = (&self.registry, self.pool.name());
        self.meters.tried(registry, pool, &policy, kind);
    }
}
