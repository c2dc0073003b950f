//! How many log lines a policy may write: a number in each call, and a number in each second.
//!
//! Seconds are those of the windows, so the same windows give the same lines on every machine.

use crate::limits::Limits;

const US_PER_S: u64 = 1_000_000;

/// The lines that a policy may still write.
pub(crate) struct LogQuota {
    /// Lines of one call, and of a burst.
    per_call: u32,
    left_in_call: u32,
    dropped_in_call: u64,
    /// Time after which one more line is allowed.
    line_us: u64,
    /// Unused time, up to a burst. A line costs `line_us` of it.
    unused_us: u64,
    /// Time of the last refill.
    filled_at_us: u64,
    over_rate: OverRate,
}

/// Lines past the limit of a second that no log line has told of yet.
#[derive(Default)]
struct OverRate {
    lines: u64,
    /// Time of the last log line about them.
    told_at_us: Option<u64>,
}

/// Whether a line may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineVerdict {
    Write,
    /// Past the limit of the call.
    OverCall,
    /// Past the limit of the second.
    OverRate,
}

// === impl LogQuota ===

impl LogQuota {
    pub(crate) fn new(limits: &Limits) -> Self {
        let line_us = US_PER_S / u64::from(limits.log_lines_per_s.max(1));
        let mut quota = Self {
            per_call: limits.log_lines,
            left_in_call: limits.log_lines,
            dropped_in_call: 0,
            line_us,
            unused_us: 0,
            filled_at_us: 0,
            over_rate: OverRate::default(),
        };
        quota.restart();
        quota
    }

    /// The time starts again from zero, with a whole burst.
    pub(crate) fn restart(&mut self) {
        self.filled_at_us = 0;
        self.unused_us = self.burst_us();
        self.over_rate.told_at_us = None;
    }

    pub(crate) fn begin_call(&mut self) {
        self.left_in_call = self.per_call;
    }

    /// Asks for one line. Lines that the log's filter leaves out count for the call only.
    pub(crate) fn line(&mut self, now_us: u64, passes_filter: bool) -> LineVerdict {
        let Some(left) = self.left_in_call.checked_sub(1) else {
            self.dropped_in_call += 1;
            return LineVerdict::OverCall;
        };
        self.left_in_call = left;
        if !passes_filter {
            return LineVerdict::Write;
        }
        let passed_us = now_us.saturating_sub(self.filled_at_us);
        self.filled_at_us = self.filled_at_us.max(now_us);
        self.unused_us = (self.unused_us.saturating_add(passed_us)).min(self.burst_us());
        match self.unused_us.checked_sub(self.line_us) {
            Some(unused_us) => {
                self.unused_us = unused_us;
                LineVerdict::Write
            }
            None => {
                self.over_rate.lines += 1;
                LineVerdict::OverRate
            }
        }
    }

    /// Ends a call: the lines past its limit.
    pub(crate) fn take_dropped_in_call(&mut self) -> u64 {
        std::mem::take(&mut self.dropped_in_call)
    }

    /// The lines past the limit of a second, to be logged: at most once a second.
    pub(crate) fn take_over_rate(&mut self, now_us: u64) -> Option<u64> {
        let told_at_us = self.over_rate.told_at_us;
        let is_due = told_at_us.is_none_or(|at| now_us.saturating_sub(at) >= US_PER_S);
        if self.over_rate.lines == 0 || !is_due {
            return None;
        }
        self.over_rate.told_at_us = Some(now_us);
        Some(std::mem::take(&mut self.over_rate.lines))
    }

    fn burst_us(&self) -> u64 {
        self.line_us.saturating_mul(u64::from(self.per_call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota() -> LogQuota {
        LogQuota::new(&Limits {
            log_lines: 5,
            log_lines_per_s: 10,
            ..Limits::default()
        })
    }

    /// Calls of two lines each, one every 10 ms: the lines written.
    fn written(quota: &mut LogQuota, from_us: u64, calls: u64) -> usize {
        let mut written = 0;
        for call in 0..calls {
            quota.begin_call();
            let now_us = from_us + call * 10_000;
            let verdicts = [(); 2].map(|()| quota.line(now_us, true));
            written += verdicts
                .iter()
                .filter(|verdict| **verdict == LineVerdict::Write)
                .count();
        }
        written
    }

    #[test]
    fn lines_of_a_second_are_limited_over_all_calls() {
        let mut quota = quota();
        assert_eq!(
            written(&mut quota, 0, 100),
            5 + 9,
            "a burst, then ten a second"
        );
        assert_eq!(quota.take_over_rate(1_000_000), Some(186));
        assert_eq!(written(&mut quota, 1_000_000, 100), 10);
        assert_eq!(quota.take_over_rate(1_500_000), None, "told once a second");
        assert_eq!(quota.take_over_rate(2_000_000), Some(190));
    }

    #[test]
    fn lines_that_the_filter_leaves_out_do_not_use_up_the_second() {
        let mut quota = quota();
        for _call in 0..100 {
            quota.begin_call();
            assert_eq!(quota.line(0, false), LineVerdict::Write);
        }
        quota.begin_call();
        assert_eq!(quota.line(0, true), LineVerdict::Write);
    }
}
