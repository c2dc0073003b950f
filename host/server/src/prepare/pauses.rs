//! Pauses after failed runs of the command. A run can take minutes of a core, so a cause that lasts,
//! such as a folder that cannot be written to, must not have it run all the time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use switchyard_core::ids::AppId;

/// Shortest pause after a failed run; each further failure doubles it ...
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// ... up to this.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// A pause is at least this many times as long as the failed run: a run that fails late takes at most
/// a tenth of a core.
const PAUSE_PER_RUN: u32 = 9;

/// The apps whose last run failed.
#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeMap<AppId, Failing>);

#[derive(Debug)]
struct Failing {
    /// No run before this moment.
    until: Instant,
    pause: Duration,
    reason: String,
}

/// A failed run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Time until the next run.
    pub(super) pause: Duration,
    /// Whether it is the first one, or has another reason than the one before.
    pub(super) is_new: bool,
}

// === impl Pauses ===

impl Pauses {
    pub(super) fn is_paused(&self, app: AppId, now: Instant) -> bool {
        self.0.get(&app).is_some_and(|failing| now < failing.until)
    }

    pub(super) fn succeeded(&mut self, app: AppId) {
        self.0.remove(&app);
    }

    pub(super) fn failed(
        &mut self,
        app: AppId,
        reason: &str,
        now: Instant,
        took: Duration,
    ) -> Failure {
        let before = self.0.get(&app);
        let doubled = before.map_or(PAUSE_MIN, |before| (before.pause * 2).min(PAUSE_MAX));
        let is_new = before.is_none_or(|before| before.reason != reason);
        let pause = doubled.max(took * PAUSE_PER_RUN);
        let failing = Failing {
            until: now + pause,
            pause: doubled,
            reason: reason.to_owned(),
        };
        self.0.insert(app, failing);
        Failure { pause, is_new }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: AppId = AppId(0);

    #[test]
    fn a_command_that_fails_is_run_less_and_less_often_and_logged_once() {
        let (mut pauses, mut now) = (Pauses::default(), Instant::now());
        let mut seconds = Vec::new();
        let mut told = 0;
        for _ in 0..12 {
            assert!(!pauses.is_paused(APP, now));
            let failure = pauses.failed(APP, "read-only file system", now, Duration::ZERO);
            assert!(pauses.is_paused(APP, now));
            now += failure.pause;
            seconds.push(failure.pause.as_secs());
            told += u32::from(failure.is_new);
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(told, 1);
        assert!(pauses.failed(APP, "no space", now, Duration::ZERO).is_new);
        pauses.succeeded(APP);
        assert!(!pauses.is_paused(APP, now));
        let again = pauses.failed(APP, "no space", now, Duration::ZERO);
        assert_eq!((again.pause.as_secs(), again.is_new), (1, true));
    }

    #[test]
    fn a_run_that_fails_late_takes_at_most_a_tenth_of_a_core() {
        let mut pauses = Pauses::default();
        let now = Instant::now();
        let minute = Duration::from_secs(60);
        let failure = pauses.failed(APP, "no space", now, minute);
        assert_eq!(failure.pause, minute * 9);
        assert!(!pauses.is_paused(AppId(1), now));
    }
}
