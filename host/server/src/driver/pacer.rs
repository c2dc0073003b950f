//! Decides whether turns are short enough to be inline turns.

use std::time::Duration;

/// The longest turn that a borrowed thread may expect.
const QUICK: Duration = Duration::from_micros(200);

/// The time that a turn with a policy fault counts as.
const FAULTED: Duration = Duration::from_secs(60);

/// The longest recent turn: each later turn takes a sixteenth off it. Inline turns resume 50 quick
/// turns after a turn of 5 ms, and 196 after a fault.
#[derive(Default)]
pub(super) struct Pacer {
    longest: Duration,
    /// Since the start.
    slowest: Duration,
}

// === impl Pacer ===

impl Pacer {
    pub(super) fn took(&mut self, turn: Duration) {
        self.longest = turn.max(self.longest - self.longest / 16);
        self.slowest = self.slowest.max(turn);
    }

    /// The longest turn since the start.
    pub(super) fn slowest(&self) -> Duration {
        self.slowest
    }

    pub(super) fn faulted(&mut self) {
        self.longest = FAULTED;
    }

    pub(super) fn is_quick(&self) -> bool {
        self.longest <= QUICK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Turns of 10 us until inline turns resume.
    fn turns_until_quick(pacer: &mut Pacer) -> usize {
        let mut turns = 0;
        while !pacer.is_quick() {
            pacer.took(MS / 100);
            turns += 1;
        }
        turns
    }

    #[test]
    fn a_slow_turn_counts_for_a_while() {
        let mut pacer = Pacer::default();
        assert!(pacer.is_quick());
        pacer.took(MS / 5);
        assert!(pacer.is_quick(), "at the bound");
        pacer.took(MS / 4);
        assert_eq!(
            turns_until_quick(&mut pacer),
            4,
            "a moment without a processor"
        );
        pacer.took(5 * MS);
        assert_eq!(turns_until_quick(&mut pacer), 50);
        assert_eq!(pacer.slowest(), 5 * MS);
    }

    #[test]
    fn a_fault_counts_for_longer() {
        let mut pacer = Pacer::default();
        pacer.faulted();
        // The turn in which it happened ends.
        pacer.took(5 * MS);
        assert_eq!(turns_until_quick(&mut pacer), 195);
    }

    #[test]
    fn one_slow_turn_in_forty_keeps_inline_turns_off() {
        let mut pacer = Pacer::default();
        pacer.took(5 * MS);
        for turn in 1..1_000 {
            pacer.took(if turn % 40 == 0 { 5 * MS } else { MS / 100 });
            assert!(!pacer.is_quick(), "turn {turn}");
        }
    }
}
