//! The host's state of one policy, and the host functions that the contract offers.

use std::sync::Arc;
use std::time::Duration;

use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use crate::artifacts::{ArtifactError, Artifacts};
use crate::budget::CallBudget;
use crate::limits::{GrowthLimiter, Limits};
use crate::log_quota::{LineVerdict, LogQuota};
use crate::printed::PrintedLines;
use crate::truncate::one_line;
use crate::usage::PolicyUsage;

/// Lives in the store of an instance. When a fault ends the instance, the next one takes it over.
pub(crate) struct HostState {
    /// `name@version` from the description; until then the file's name.
    pub(crate) label: String,
    pub(crate) limiter: GrowthLimiter,
    /// Of the call under way.
    pub(crate) budget: CallBudget,
    /// Whether `configure` runs: only then may the policy read artifacts.
    pub(crate) configuring: bool,
    /// A fresh instance repeats a `configure` whose lines have been logged.
    pub(crate) repeating: bool,
    /// Time of the last window, which the clocks show.
    pub(crate) now_us: u64,
    /// Standard output and standard error.
    printed: [PrintedLines; 2],
    artifacts: Artifacts,
    seed: u64,
    random: Pcg64,
    quota: LogQuota,
    line_bytes: usize,
    usage: Arc<PolicyUsage>,
}

/// Severity of a log line, independent of the contract version.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

// === impl HostState ===

impl HostState {
    pub(crate) fn new(label: String, artifacts: Artifacts, seed: u64, limits: &Limits) -> Self {
        let usage = Arc::<PolicyUsage>::default();
        Self {
            label,
            limiter: GrowthLimiter::new(limits, Arc::clone(&usage)),
            budget: CallBudget::begin(Duration::ZERO),
            configuring: false,
            repeating: false,
            now_us: 0,
            printed: Default::default(),
            artifacts,
            seed,
            random: Pcg64::seed_from_u64(seed),
            quota: LogQuota::new(limits),
            line_bytes: limits.log_line_bytes,
            usage,
        }
    }

    /// Starts the random stream again from its seed, and the clock from zero.
    pub(crate) fn reseed(&mut self) {
        self.now_us = 0;
        self.quota.restart();
        self.random = Pcg64::seed_from_u64(self.seed);
    }

    pub(crate) fn begin_call(&mut self) {
        self.limiter.take_refused();
        self.quota.begin_call();
    }

    pub(crate) fn end_call(&mut self) {
        for is_error in [false, true] {
            let mut last = None;
            self.printed[usize::from(is_error)].end(|line| last = Some(line));
            last.into_iter()
                .for_each(|line| self.log(level(is_error), line));
        }
        let dropped = self.quota.take_dropped_in_call();
        if dropped > 0 {
            self.usage.lines_dropped(dropped);
            tracing::debug!(
                policy = %self.label,
                dropped,
                dropped_in_all = self.usage.log_lines_dropped(),
                "log lines past the limit of one call"
            );
        }
        if let Some(lines) = self.quota.take_over_rate(self.now_us) {
            tracing::warn!(
                policy = %self.label,
                lines,
                "the policy writes too many log lines: these were left out"
            );
        }
    }

    /// The resources that the policy has used so far.
    pub(crate) fn usage(&self) -> &Arc<PolicyUsage> {
        &self.usage
    }

    pub(crate) fn log(&mut self, level: LogLevel, mut message: String) {
        if self.repeating {
            return;
        }
        match self.quota.line(self.now_us, level.is_logged()) {
            LineVerdict::Write => {}
            LineVerdict::OverCall => return,
            LineVerdict::OverRate => return self.usage.line_over_rate(),
        }
        one_line(&mut message, self.line_bytes);
        let policy = &self.label;
        match level {
            LogLevel::Trace => tracing::trace!(target: "policy", %policy, "{message}"),
            LogLevel::Debug => tracing::debug!(target: "policy", %policy, "{message}"),
            LogLevel::Info => tracing::info!(target: "policy", %policy, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "policy", %policy, "{message}"),
            LogLevel::Error => tracing::error!(target: "policy", %policy, "{message}"),
        }
    }

    /// Writes printed bytes to the log, line by line.
    pub(crate) fn print(&mut self, is_error: bool, bytes: &[u8]) {
        let (line_bytes, mut lines) = (self.line_bytes, Vec::new());
        let output = &mut self.printed[usize::from(is_error)];
        output.take(bytes, line_bytes, |line| lines.push(line));
        lines
            .into_iter()
            .for_each(|line| self.log(level(is_error), line));
    }

    pub(crate) fn read_artifact(&self, name: &str) -> Result<Vec<u8>, ArtifactError> {
        if !self.configuring {
            return Err(ArtifactError::Forbidden);
        }
        self.artifacts.read(name)
    }

    pub(crate) fn random_u64(&mut self) -> u64 {
        self.random.next_u64()
    }
}

// === impl LogLevel ===

impl LogLevel {
    /// Whether the log's filter lets lines of this level pass.
    fn is_logged(self) -> bool {
        match self {
            Self::Trace => tracing::enabled!(target: "policy", tracing::Level::TRACE),
            Self::Debug => tracing::enabled!(target: "policy", tracing::Level::DEBUG),
            Self::Info => tracing::enabled!(target: "policy", tracing::Level::INFO),
            Self::Warn => tracing::enabled!(target: "policy", tracing::Level::WARN),
            Self::Error => tracing::enabled!(target: "policy", tracing::Level::ERROR),
        }
    }
}

/// Severity of a printed line.
fn level(is_error: bool) -> LogLevel {
    if is_error {
        LogLevel::Warn
    } else {
        LogLevel::Info
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn state(seed: u64) -> HostState {
        let limits = Limits {
            log_lines: 3,
            log_lines_per_s: 1,
            ..Limits::default()
        };
        let artifacts = Artifacts::new("/nowhere".into(), 0);
        HostState::new("chatty".to_owned(), artifacts, seed, &limits)
    }

    #[test]
    fn lines_past_the_limit_of_a_call_are_counted() {
        let mut state = state(0);
        for _call in 0..2 {
            state.begin_call();
            for _line in 0..5 {
                state.log(LogLevel::Trace, "line".to_owned());
            }
            state.end_call();
        }
        assert_eq!(state.usage().log_lines_dropped(), 4);
    }

    /// The log of a second in which a policy forges lines and writes more than it may.
    fn logged(state: &mut HostState) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = Arc::new(file.reopen().unwrap());
        let subscriber = tracing_subscriber::fmt()
            .with_writer(writer)
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            for call in 0..10 {
                state.now_us = call * 100_000;
                state.begin_call();
                let forged = "line\n2026-01-01T00:00:00Z ERROR forged".to_owned();
                state.log(LogLevel::Info, forged);
                state.end_call();
            }
        });
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn a_policy_cannot_forge_log_lines_and_those_past_the_rate_are_counted() {
        let mut state = state(0);
        let log = logged(&mut state);
        let written = log.lines().filter(|line| line.contains("forged"));
        assert_eq!(written.count(), 3, "{log}");
        assert!(
            log.contains(r"line\n2026-01-01T00:00:00Z ERROR forged"),
            "{log}"
        );
        assert!(
            log.lines().all(|line| !line.starts_with("2026-01-01")),
            "{log}"
        );
        assert_eq!(state.usage().log_lines_over_rate(), 7);
        assert!(log.contains("lines=1"), "{log}");
    }

    #[test]
    fn the_stream_follows_its_seed() {
        let draw = |state: &mut HostState| [(); 3].map(|()| state.random_u64());
        let (mut one, mut two) = (state(1), state(2));
        let first = draw(&mut one);
        assert_ne!(first, draw(&mut two));
        assert_ne!(first, draw(&mut one), "the stream goes on");
        one.reseed();
        assert_eq!(first, draw(&mut one));
    }

    #[test]
    fn artifacts_can_be_read_in_configure_only() {
        let mut state = state(0);
        assert_eq!(state.read_artifact("a"), Err(ArtifactError::Forbidden));
        state.configuring = true;
        assert_eq!(state.read_artifact("a"), Err(ArtifactError::NotFound));
    }
}
