//! The rule by which a canary ends, and its verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::test::PairedTest;
use crate::time::Micros;

/// When a canary ends, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CanaryRule {
    /// When the candidate is promoted.
    pub promote_if: PromoteIf,
    /// Whether a worse candidate is rolled back at once; otherwise when the time is over.
    pub rolls_back_if_worse: bool,
    /// Probability of a wrong verdict, 0 to 1: that a candidate that equals the baseline is ever called
    /// better or worse.
    pub error: f64,
    /// Utility that a candidate may lose and still count as not worse.
    pub margin: f64,
    /// Faults of the candidate at which it is rolled back.
    pub faults_max: u64,
    /// Longest time; the candidate is rolled back at its end.
    pub within: Micros,
}

/// When a candidate is promoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromoteIf {
    /// Its utility is higher.
    #[default]
    Better,
    /// Its utility is at most the margin lower.
    NotWorse,
    /// Only by an operator's order.
    Never,
}

/// The end of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate serves from now on.
    Promote(Why),
    /// The policy that served before serves on.
    RollBack(Why),
}

/// The reason of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The candidate's utility is higher.
    Better,
    /// Its utility is at most the margin lower.
    NotWorse,
    /// Its utility is lower.
    Worse,
    /// It faulted too often.
    Faults,
    /// The time is over without a difference.
    Undecided,
    /// An operator's order.
    Ordered,
}

// === impl CanaryRule ===

impl Default for CanaryRule {
    fn default() -> Self {
        Self {
            promote_if: PromoteIf::default(),
            rolls_back_if_worse: true,
            error: 0.01,
            margin: 0.01,
            faults_max: 5,
            within: Micros::from_millis(600_000),
        }
    }
}

impl CanaryRule {
    /// The verdict after `ran_for`, if there is one.
    pub(super) fn judge(&self, test: &PairedTest, faults: u64, ran_for: Micros) -> Option<Verdict> {
        if faults >= self.faults_max.max(1) {
            return Some(Verdict::RollBack(Why::Faults));
        }
        let is_different = test.evidence_against(0.0) >= 1.0 / self.error;
        let is_worse = is_different && test.mean() < 0.0;
        let is_over = ran_for >= self.within;
        if is_worse && (self.rolls_back_if_worse || is_over) {
            return Some(Verdict::RollBack(Why::Worse));
        }
        match self.promote_if {
            PromoteIf::Better | PromoteIf::NotWorse if is_different && test.mean() > 0.0 => {
                return Some(Verdict::Promote(Why::Better));
            }
            PromoteIf::NotWorse if self.is_not_worse(test) => {
                return Some(Verdict::Promote(Why::NotWorse));
            }
            PromoteIf::Better | PromoteIf::NotWorse | PromoteIf::Never => {}
        }
        is_over.then_some(Verdict::RollBack(Why::Undecided))
    }

    fn is_not_worse(&self, test: &PairedTest) -> bool {
        let bound = -self.margin;
        test.mean() > bound && test.evidence_against(bound) >= 1.0 / self.error
    }
}

// === impl Verdict ===

impl Verdict {
    /// Its reason.
    pub fn why(self) -> Why {
        match self {
            Self::Promote(why) | Self::RollBack(why) => why,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self {
            Self::Promote(_) => "promoted",
            Self::RollBack(_) => "rolled back",
        };
        write!(f, "{end}: {}", self.why())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::NotWorse => "not worse",
            Self::Worse => "worse",
            Self::Faults => "faults",
            Self::Undecided => "no difference within its time",
            Self::Ordered => "ordered",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Micros = Micros::from_millis(1_000);

    fn test(difference: f64, pairs: usize) -> PairedTest {
        let mut test = PairedTest::default();
        (0..pairs).for_each(|_| test.add(difference));
        test
    }

    #[test]
    fn verdicts_follow_the_rule() {
        let rule = CanaryRule::default();
        let late = rule.within;
        let ends = |rule: &CanaryRule, test, at| rule.judge(&test, 0, at);
        assert_eq!(ends(&rule, test(-0.1, 3), SOON), None);
        let worse = Some(Verdict::RollBack(Why::Worse));
        assert_eq!(ends(&rule, test(-0.1, 30), SOON), worse);
        let better = Some(Verdict::Promote(Why::Better));
        assert_eq!(ends(&rule, test(0.1, 30), SOON), better);
        let undecided = Some(Verdict::RollBack(Why::Undecided));
        assert_eq!(ends(&rule, test(0.0, 30), late), undecided);

        let patient = CanaryRule {
            rolls_back_if_worse: false,
            promote_if: PromoteIf::Never,
            ..rule
        };
        assert_eq!(ends(&patient, test(-0.1, 30), SOON), None);
        assert_eq!(ends(&patient, test(-0.1, 30), late), worse);
        assert_eq!(ends(&patient, test(0.1, 30), SOON), None);
        assert_eq!(ends(&patient, test(0.1, 30), late), undecided);

        let mild = CanaryRule {
            promote_if: PromoteIf::NotWorse,
            margin: 0.05,
            ..rule
        };
        let not_worse = Some(Verdict::Promote(Why::NotWorse));
        assert_eq!(ends(&mild, test(0.0, 30), SOON), not_worse);
        assert_eq!(ends(&mild, test(-0.1, 30), SOON), worse);
    }

    #[test]
    fn faults_end_it_whatever_else_holds() {
        let rule = CanaryRule::default();
        let faulted = Some(Verdict::RollBack(Why::Faults));
        assert_eq!(rule.judge(&test(0.1, 30), 5, SOON), faulted);
        assert_eq!(rule.judge(&test(0.0, 1), 4, SOON), None);
    }
}
