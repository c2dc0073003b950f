//! Whether a driver's turns are quick enough for whoever has something else to do.

use std::time::Duration;

/// What a turn taken in passing may be expected to take.
const QUICK: Duration = Duration::from_micros(200);

/// What a turn counts as in which the policy did something wrong.
const FAULTED: Duration = Duration::from_secs(60);

/// The longest turn of late: each one since took a sixteenth off it. After a turn of 5 ms it takes
/// 50 quick ones until others drive again, after a fault 196.
#[derive(Default)]
pub(super) struct Pace {
    longest: Duration,
}

// === impl Pace ===

impl Pace {
    pub(super) fn took(&mut self, turn: Duration) {
        self.longest = turn.max(self.longest - self.longest / 16);
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

    /// Turns that take next to nothing until others drive again.
    fn turns_until_quick(pace: &mut Pace) -> usize {
        let mut turns = 0;
        while !pace.is_quick() {
            pace.took(MS / 100);
            turns += 1;
        }
        turns
    }

    #[test]
    fn a_slow_turn_counts_for_a_while() {
        let mut pace = Pace::default();
        assert!(pace.is_quick());
        pace.took(MS / 5);
        assert!(pace.is_quick(), "at the bound");
        pace.took(MS / 4);
        assert_eq!(
            turns_until_quick(&mut pace),
            4,
            "a moment without a processor"
        );
        pace.took(5 * MS);
        assert_eq!(turns_until_quick(&mut pace), 50);
    }

    #[test]
    fn a_fault_counts_for_longer() {
        let mut pace = Pace::default();
        pace.faulted();
        // The turn in which it happened ends.
        pace.took(5 * MS);
        assert_eq!(turns_until_quick(&mut pace), 195);
    }

    #[test]
    fn one_that_is_slow_now_and_then_is_slow() {
        let mut pace = Pace::default();
        pace.took(5 * MS);
        for turn in 1..1_000 {
            pace.took(if turn % 40 == 0 { 5 * MS } else { MS / 100 });
            assert!(!pace.is_quick(), "turn {turn}");
        }
    }
}
