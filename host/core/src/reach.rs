//! The number of pending requests that a policy can schedule within its budget.

use crate::time::{Micros, Time};

/// The fewest requests shown. An overrun with more than twice as many is no fault, so a policy that
/// always overruns reaches its limit of faults.
const REACH_MIN: usize = 64;

/// An overrun divides the requests shown by this.
const SHRINK: usize = 4;

/// Time in which the number of requests shown doubles.
const DOUBLES_IN: Micros = Micros::from_millis(3_000);

/// The most pending requests that a policy's windows show. A window that overruns its budget makes
/// the next ones smaller instead of counting as a fault; then they grow again. Past capacity thousands of requests wait, and a policy whose time grows with their
/// number goes on with those that are due first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// None: windows show all.
    limit: Option<Limit>,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    requests: usize,
    since: Time,
}

// === impl Reach ===

impl Reach {
    /// The requests that a window shows at most.
    pub(crate) fn at(self, now: Time) -> usize {
        let Some(limit) = self.limit else {
            return usize::MAX;
        };
        let doublings = now.since(limit.since).as_secs_f64() / DOUBLES_IN.as_secs_f64();
        // Beyond the range of usize the cast gives its maximum.
        (limit.requests as f64 * doublings.exp2()) as usize
    }

    /// A window with this many requests overran its budget. False: it had so few that this is a
    /// fault.
    pub(crate) fn overran(&mut self, now: Time, requests: usize) -> bool {
        let is_excused = requests > 2 * REACH_MIN;
        if is_excused {
            let requests = (requests / SHRINK).max(REACH_MIN);
            self.limit = Some(Limit {
                requests,
                since: now,
            });
        }
        is_excused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_shrinks_windows_and_time_lets_them_grow() {
        let mut reach = Reach::default();
        assert_eq!(reach.at(Time::ZERO), usize::MAX);
        assert!(reach.overran(Time::ZERO, 4_000));
        assert_eq!(reach.at(Time::ZERO), 1_000);
        assert_eq!(reach.at(Time(6_000_000)), 4_000);
        assert_eq!(reach.at(Time(1 << 60)), usize::MAX);
    }

    #[test]
    fn an_overrun_with_few_requests_is_a_fault() {
        let mut reach = Reach::default();
        assert!(reach.overran(Time::ZERO, 2 * REACH_MIN + 1));
        assert_eq!(reach.at(Time::ZERO), REACH_MIN);
        assert!(!reach.overran(Time::ZERO, 2 * REACH_MIN));
    }
}
