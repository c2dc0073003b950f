//! The host's state of one policy, and the host functions that the contract offers.

use std::sync::Arc;
use std::time::Duration;

use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use crate::artifacts::{ArtifactError, Artifacts};
use crate::budget::CallBudget;
use crate::limits::{GrowthLimiter, Limits};
use crate::printed::PrintedLines;
use crate::truncate::truncate;
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
    /// Time of the last window, which the clocks show.
    pub(crate) now_us: u64,
    /// Standard output and standard error.
    printed: [PrintedLines; 2],
    artifacts: Artifacts,
    seed: u64,
    random: Pcg64,
    log: LogQuota,
    usage: Arc<PolicyUsage>,
}

struct LogQuota {
    /// Lines of one call.
    lines: u32,
    line_bytes: usize,
    /// Lines that the call under way may still write.
    left: u32,
    dropped_in_call: u64,
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
            now_us: 0,
            printed: Default::default(),
            artifacts,
            seed,
            random: Pcg64::seed_from_u64(seed),
            log: LogQuota {
                lines: limits.log_lines,
                line_bytes: limits.log_line_bytes,
                left: limits.log_lines,
                dropped_in_call: 0,
            },
            usage,
        }
    }

    /// Starts the random stream again from its seed, and the clock from zero.
    pub(crate) fn reseed(&mut self) {
        self.now_us = 0;
        self.random = Pcg64::seed_from_u64(self.seed);
    }

    pub(crate) fn begin_call(&mut self) {
        self.limiter.take_refused();
        self.log.left = self.log.lines;
    }

    pub(crate) fn end_call(&mut self) {
        for is_error in [false, true] {
            let mut last = None;
            self.printed[usize::from(is_error)].end(|line| last = Some(line));
            last.into_iter()
                .for_each(|line| self.log(level(is_error), line));
        }
        let dropped = std::mem::take(&mut self.log.dropped_in_call);
        if dropped > 0 {
            self.usage.lines_dropped(dropped);
            tracing::debug!(
                policy = %self.label,
                dropped,
                dropped_in_all = self.usage.log_lines_dropped(),
                "log lines past the limit of one call"
            );
        }
    }

    /// The resources that the policy has used so far.
    pub(crate) fn usage(&self) -> &Arc<PolicyUsage> {
        &self.usage
    }

    pub(crate) fn log(&mut self, level: LogLevel, mut message: String) {
        let Some(left) = self.log.left.checked_sub(1) else {
            self.log.dropped_in_call += 1;
            return;
        };
        self.log.left = left;
        truncate(&mut message, self.log.line_bytes);
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
        let (line_bytes, mut lines) = (self.log.line_bytes, Vec::new());
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
    use super::*;

    fn state(seed: u64) -> HostState {
        let limits = Limits {
            log_lines: 3,
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
