//! The policy's settings.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

use crate::exits::ExitRule;

/// Rounds that can be looked ahead: each multiplies the cost by the number of queues.
const LOOKAHEAD_MAX: u32 = 3;

/// What can be chosen. The published policy is the default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Which of the paper's schedulers.
    pub(crate) policy: PolicyName,
    /// Largest batch (B_max in eq. 5).
    pub(crate) batch_max: usize,
    /// Where urgency stops to grow (C in eq. 3).
    pub(crate) clip: f64,
    /// Names of the exits that may be taken beside each variant's last one; none: all.
    pub(crate) exits: Option<Vec<String>>,
    /// Whether urgency is measured by each request's deadline or by its app's SLO.
    pub(crate) deadlines: Deadlines,
    /// Rounds that are predicted, and whose scores are summed up; the paper looks at one.
    pub(crate) lookahead: u32,
    /// Of all queues those are looked at first whose service makes the fewest tasks late; not in
    /// the paper.
    pub(crate) protect: bool,
}

/// The schedulers of sections V, VI-A and VI-H.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyName {
    /// EdgeServing.
    Stability,
    /// Longest queue, last exit.
    AllFinal,
    /// Longest queue, first exit.
    AllEarly,
    /// Each queue waits until its oldest task must start; last exit.
    Symphony,
    /// Longest queue, deepest exit in time.
    EarlyExitLqf,
    /// Least slack, deepest exit in time.
    EarlyExitEdf,
    /// Stability score, last exit.
    AllFinalDeadlineAware,
}

/// How it is chosen which queue is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Lowest predicted stability score (eq. 7).
    LowestScore,
    /// Most waiting tasks.
    LongestQueue,
    /// Least slack of its most urgent task.
    EarliestDeadline,
    /// Only what must start or is full, the most urgent first.
    Deferred,
}

/// What a request's urgency is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Deadlines {
    /// Its own deadline, whatever the SLO is.
    Request,
    /// Its waiting time and its app's SLO, as in the paper.
    Slo,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: PolicyName::Stability,
            batch_max: 10,
            clip: std::f64::consts::E,
            exits: None,
            deadlines: Deadlines::Request,
            lookahead: 1,
            protect: false,
        }
    }
}

// === impl Settings ===

impl Settings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first field that does not do, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        require(settings.batch_max > 0, "batch_max", "must be at least 1")?;
        let is_positive = settings.clip.is_finite() && settings.clip > 0.0;
        require(is_positive, "clip", "must be positive")?;
        let looks = (1..=LOOKAHEAD_MAX).contains(&settings.lookahead);
        require(looks, "lookahead", "must be 1 to 3")?;
        Ok(settings)
    }

    /// Whether an exit that is not its variant's last may be taken.
    pub(crate) fn uses_exit(&self, name: &str) -> bool {
        let named = self.exits.as_ref();
        named.is_none_or(|names| names.iter().any(|known| known == name))
    }
}

// === impl PolicyName ===

impl PolicyName {
    pub(crate) fn selection(self) -> Selection {
        match self {
            Self::Stability | Self::AllFinalDeadlineAware => Selection::LowestScore,
            Self::AllFinal | Self::AllEarly | Self::EarlyExitLqf => Selection::LongestQueue,
            Self::EarlyExitEdf => Selection::EarliestDeadline,
            Self::Symphony => Selection::Deferred,
        }
    }

    pub(crate) fn exit_rule(self) -> ExitRule {
        match self {
            Self::Stability | Self::EarlyExitLqf | Self::EarlyExitEdf => ExitRule::DeepestInTime,
            Self::AllFinal | Self::AllFinalDeadlineAware | Self::Symphony => ExitRule::Final,
            Self::AllEarly => ExitRule::Early,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use switchyard_sdk::testing::check_documented;

    use super::*;

    #[test]
    fn errors_name_the_field() {
        for (json, field) in [
            (r#"{"policy": "lqf"}"#, "policy"),
            (r#"{"batch_max": 0}"#, "batch_max"),
            (r#"{"clip": 0}"#, "clip"),
            (r#"{"exits": true}"#, "exits"),
            (r#"{"deadlines": "none"}"#, "deadlines"),
            (r#"{"lookahead": 4}"#, "lookahead"),
        ] {
            let error = Settings::try_new(json).unwrap_err();
            assert!(
                error.starts_with(&format!("settings: {field}: ")),
                "{error}"
            );
        }
        assert_eq!(Settings::try_new("{}"), Ok(Settings::default()));
    }

    #[test]
    fn the_readme_knows_every_setting_and_its_default() {
        check_documented(include_str!("../README.md"), Settings::try_new);
    }
}
