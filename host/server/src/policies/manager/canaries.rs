//! The canary of a pool: begun by an operator's order, ended by its verdict, by an order, or by another
//! swap.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use switchyard_core::canary::{Canary, CanaryParts, CanaryReport, CanaryWatch, Verdict, Why};
use switchyard_core::policy::Policy;
use switchyard_policy::loader::{Loaded, PolicyTrial};
use switchyard_policy::recording::PolicyRecord;
use switchyard_policy::{CodeTier, PolicyVersion};

use super::{Manager, Switched, load, load_error, source};
use crate::observed::Observed;
use crate::policies::canary::CanarySettings;
use crate::policies::handle::{SwapError, lock};
use crate::policies::report::{CanaryStatus, Swap, SwapResult, Version};
use crate::policies::running_canary::{LOOK_EVERY, RunningCanary};

impl Manager {
    /// Loads the candidate, and two instances of the version that serves, and lets them share the pool.
    pub(super) fn begin_canary(
        &mut self,
        file: &Path,
        settings: CanarySettings,
        by: &str,
    ) -> Result<Swap, SwapError> {
        let is_active = lock(&self.status).active.is_some();
        let serving = self.history.iter().next().cloned();
        let Some(serving) = serving.filter(|_| is_active) else {
            return Err(SwapError::NoPolicy);
        };
        if let Some(swap) = self.is_running(file, settings) {
            return Ok(swap);
        }
        let result = self.load_canary(file, &serving, settings);
        let (switched, watch) = match result {
            Ok((switched, watch)) => (Ok(switched), Some(watch)),
            Err(error) => (Err(error), None),
        };
        let candidate = switched.as_ref().ok().map(|it| it.version.clone());
        let swap = self.settle_canary(file, by, switched)?;
        if let (Some(watch), Some(candidate)) = (watch, candidate) {
            self.superseded();
            self.canary_runs(true);
            let status = CanaryStatus {
                candidate: Version::from(&candidate),
                serving: Version::from(&serving),
                by: by.to_owned(),
                began_us: swap.at_us,
                settings,
                runs: true,
                report: watch.report(),
            };
            let mut shown = lock(&self.status);
            shown.canary = Some(status);
            // Its members have been loaded anew.
            shown.code = CodeTier::Optimized;
            drop(shown);
            self.canary = Some(RunningCanary {
                candidate,
                watch,
                settings,
                by: by.to_owned(),
                faults: 0,
                look_at: Instant::now() + LOOK_EVERY,
            });
        }
        Ok(swap)
    }

    /// The same order, carried out already.
    fn is_running(&self, file: &Path, settings: CanarySettings) -> Option<Swap> {
        let running = self.canary.as_ref()?;
        let over = self.settings.clone().unwrap_or_default();
        let hash = source::version(file, over).ok()?.hash;
        if running.candidate.hash != hash || running.settings != settings {
            return None;
        }
        let swaps = &lock(&self.status).swaps;
        let began = |swap: &&Swap| swap.result == SwapResult::CanaryBegan && swap.error.is_none();
        swaps.iter().rev().find(began).cloned()
    }

    fn load_canary(
        &mut self,
        file: &Path,
        serving: &PolicyVersion,
        settings: CanarySettings,
    ) -> Result<(Switched, CanaryWatch), SwapError> {
        let windows = self.recorded_windows().ok_or(SwapError::Stopped)?;
        let trial = PolicyTrial {
            catalog: &self.catalog,
            windows: &windows,
        };
        let over = self.settings.clone();
        let loaded = load(&self.loader, file, over, trial).map_err(load_error)?;
        let [serving, baseline] = [(); 2].map(|()| {
            let loaded = self.loader.load_version(serving, trial);
            loaded.map_err(load_error).map(|loaded| loaded.policy)
        });
        let observed = |policy| -> Box<dyn Policy> {
            Box::new(Observed::new(policy, self.pool.name(), &self.registry))
        };
        let Loaded {
            policy,
            version,
            report,
            ..
        } = loaded;
        let (canary, watch) = Canary::new(CanaryParts {
            serving: observed(serving?),
            baseline: observed(baseline?),
            candidate: observed(policy),
            catalog: Arc::clone(&self.catalog),
            share: settings.share,
            slot: settings.slot(&self.catalog),
            seed: self.pool.clock().now().0,
            rule: settings.rule(),
        });
        let record = PolicyRecord::native(canary.description());
        let switch = self.install(Box::new(canary), record)?;
        let switched = Switched {
            version,
            report,
            switch,
        };
        Ok((switched, watch))
    }

    /// Follows the canary: its faults go to the log, its verdict is carried out.
    pub(super) fn look_at_canary(&mut self) {
        let Some(running) = &mut self.canary else {
            return;
        };
        running.look_at = Instant::now() + LOOK_EVERY;
        let report = running.watch.report();
        let pool = self.pool.name();
        let candidate = report.members[2].clone();
        if candidate.faults > running.faults {
            running.faults = candidate.faults;
            let (policy, fault) = (&candidate.policy, candidate.last_fault.unwrap_or_default());
            tracing::warn!(
                pool,
                policy,
                fault,
                faults = candidate.faults,
                "canary fault"
            );
        }
        let by = running.by.clone();
        let (verdict, is_dropped) = (report.verdict, report.dropped);
        if let Some(status) = &mut lock(&self.status).canary {
            status.report = report;
        }
        let verdict = match verdict {
            Some(verdict) => verdict,
            // The pool's policy was taken off for its faults, and the candidate with it.
            None if is_dropped => Verdict::RollBack(Why::Faults),
            None => return,
        };
        if let Err(error) = self.end_canary(verdict, &by) {
            tracing::error!(pool = self.pool.name(), %error, "the canary's end failed");
        }
    }

    /// Ends the canary: the winner serves alone, and after a restart too.
    pub(super) fn end_canary(&mut self, verdict: Verdict, by: &str) -> Result<Swap, SwapError> {
        let Some(running) = self.canary.take() else {
            return Err(SwapError::NoCanary);
        };
        if running.watch.report().verdict.is_none() {
            running.watch.order(verdict);
        }
        self.canary_runs(false);
        let report = running.watch.report();
        let (result, version) = match verdict {
            Verdict::Promote(_) => (SwapResult::Promoted, Some(running.candidate)),
            Verdict::RollBack(_) => (SwapResult::Kept, self.history.iter().next().cloned()),
        };
        let reason = told(verdict, &report);
        let result = match version {
            Some(version) => {
                let attempt = self.attempt(|loader, trial| loader.load_version(&version, trial));
                self.settle(&version.file, result, (by, &reason), attempt)
            }
            None => Err(SwapError::NoPolicy),
        };
        // After the swap, so that a reader who sees the end sees the swap too.
        if let Some(status) = &mut lock(&self.status).canary {
            status.report = report;
            status.report.verdict = Some(verdict);
            status.runs = false;
        }
        if result.is_ok() && matches!(verdict, Verdict::Promote(_)) {
            self.write_latest()?;
        }
        result
    }

    /// Another policy serves: a canary that ran has ended.
    pub(super) fn superseded(&mut self) {
        let Some(running) = self.canary.take() else {
            return;
        };
        self.canary_runs(false);
        let verdict = Verdict::RollBack(Why::Ordered);
        let pool = self.pool.name();
        tracing::info!(
            pool,
            policy = running.candidate.label,
            "canary ended: another policy serves"
        );
        if let Some(status) = &mut lock(&self.status).canary {
            status.report = running.watch.report();
            status.report.verdict.get_or_insert(verdict);
            status.runs = false;
        }
    }

    fn canary_runs(&self, runs: bool) {
        self.meters.canary_runs(runs);
    }

    /// Logs and counts the beginning of a canary.
    fn settle_canary(
        &mut self,
        file: &Path,
        by: &str,
        attempt: Result<Switched, SwapError>,
    ) -> Result<Swap, SwapError> {
        let switched = match attempt {
            Ok(switched) => switched,
            Err(error) => return self.refused(file, by, error),
        };
        let at = self.pool.clock().now();
        let version = &switched.version;
        let swap = Swap {
            by: by.to_owned(),
            file: file.display().to_string(),
            ..Swap::done(
                SwapResult::CanaryBegan,
                at,
                version,
                &switched.report,
                switched.switch,
            )
        };
        let pool = self.pool.name();
        tracing::info!(
            pool,
            by,
            policy = swap.policy,
            hash = swap.hash,
            "canary begins"
        );
        self.meters.count(SwapResult::CanaryBegan);
        lock(&self.status).tried(swap.clone());
        Ok(swap)
    }
}

/// The verdict with its figures.
fn told(verdict: Verdict, report: &CanaryReport) -> String {
    let (low, high) = report.interval;
    format!(
        "{verdict}; utility {:+.4} ({low:+.4} to {high:+.4}) over {} rounds, {} faults",
        report.difference, report.pairs, report.members[2].faults
    )
}
