//! When the log mentions the drift of a worker: at most one line per minute and kind of line.

use switchyard_core::time::{Micros, Time};

/// The shortest time between two lines of one kind about one worker.
const INTERVAL: Micros = Micros::from_millis(60_000);

/// The lines about one worker.
#[derive(Default)]
pub(super) struct DriftNotices {
    drifts_at: Option<Time>,
    back_at: Option<Time>,
    /// The last line was [`DriftNotice::Drifts`].
    is_out: bool,
}

/// A line that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriftNotice {
    /// Some variants drift.
    Drifts,
    /// All variants are as profiled again.
    Back,
}

// === impl DriftNotices ===

impl DriftNotices {
    /// The line that is due now, while `drifting` variants drift.
    pub(super) fn due(&mut self, now: Time, drifting: usize) -> Option<DriftNotice> {
        let (notice, last) = match drifting {
            0 if self.is_out => (DriftNotice::Back, &mut self.back_at),
            0 => return None,
            _ => (DriftNotice::Drifts, &mut self.drifts_at),
        };
        if last.is_some_and(|last| now.since(last) < INTERVAL) {
            return None;
        }
        *last = Some(now);
        self.is_out = notice == DriftNotice::Drifts;
        Some(notice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of an hour, with their seconds. Each second has a batch, after which
    /// `drifting(second)` variants drift.
    fn hour(drifting: impl Fn(u64) -> usize) -> Vec<(u64, DriftNotice)> {
        let mut notices = DriftNotices::default();
        let at = |second: u64| Time::ZERO + Micros::from_millis(second * 1_000);
        (0..3_600)
            .filter_map(|second| Some((second, notices.due(at(second), drifting(second))?)))
            .collect()
    }

    #[test]
    fn drift_is_one_line_a_minute() {
        let lines = hour(|second| 1 + second as usize % 5);
        assert_eq!(lines.len(), 60);
        let expected = (0..60).map(|minute| (60 * minute, DriftNotice::Drifts));
        assert!(lines.into_iter().eq(expected));
        assert_eq!(hour(|_| 0), []);
    }

    #[test]
    fn the_end_is_one_line() {
        let lines = hour(|second| usize::from((100..130).contains(&second)));
        assert_eq!(
            lines,
            [(100, DriftNotice::Drifts), (130, DriftNotice::Back)]
        );
    }

    #[test]
    fn variants_that_come_and_go_are_two_lines_a_minute() {
        let lines = hour(|second| second as usize % 2);
        let count = |notice| lines.iter().filter(|(_, line)| *line == notice).count();
        assert_eq!(count(DriftNotice::Drifts), 60);
        assert_eq!(count(DriftNotice::Back), 60);
    }

    #[test]
    fn a_line_that_came_too_early_follows_later() {
        let lines = hour(|second| usize::from(matches!(second, 0..10 | 20..65)));
        let expected = [
            (0, DriftNotice::Drifts),
            (10, DriftNotice::Back),
            (60, DriftNotice::Drifts),
            (70, DriftNotice::Back),
        ];
        assert_eq!(lines, expected);
    }
}
