//! When a policy file that could not be read for now is tried again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest and longest pause before the next try; each failure doubles it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The next try of a file whose last try failed for a passing reason, such as a process out of
/// descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Retry {
    pub(super) file: PathBuf,
    pub(super) at: Instant,
    /// The message of the last failure. The log has it once.
    pub(super) error: String,
    pause: Duration,
}

// === impl Retry ===

impl Retry {
    /// The next try after a failure. `before` is the try that failed, if it was one.
    pub(super) fn after(before: Option<&Self>, file: &Path, error: String, now: Instant) -> Self {
        let pause = before.map_or(PAUSE_MIN, |before| (before.pause * 2).min(PAUSE_MAX));
        Self {
            file: file.to_owned(),
            at: now + pause,
            error,
            pause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_become_rarer() {
        let now = Instant::now();
        let mut retry = None;
        let pauses = [(); 8].map(|()| {
            let next = Retry::after(retry.as_ref(), Path::new("p"), String::new(), now);
            let pause = next.at - now;
            retry = Some(next);
            pause.as_secs()
        });
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
