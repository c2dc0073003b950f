//! The policy's settings.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// Upper bound of `lookahead`: each round multiplies the cost by the number of queues.
const LOOKAHEAD_MAX: u32 = 3;

/// Upper bound of `margin_us`.
const MARGIN_MAX_US: f64 = 1e6;

/// The settings of stability. The default is the published scheduler.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StabilitySettings {
    /// The scheduler.
    /// Range: `stability`, `all-final`, `all-early`, `symphony`, `early-exit-lqf`,
    /// `early-exit-edf`, `all-final-deadline-aware`.
    pub(crate) policy: PolicyName,
    /// Largest batch (B_max in eq. 5), also limited by the profile.
    /// Range: 1 or more.
    pub(crate) batch_max: usize,
    /// Upper bound of a request's urgency (C in eq. 3).
    /// Range: above 0.
    pub(crate) clip: f64,
    /// Exits that may be used in addition to each variant's last; by default all.
    /// Range: names of the catalog.
    pub(crate) exits: Option<Vec<String>>,
    /// Urgency goes by each request's deadline, or by its waiting time and its app's SLO.
    /// Range: `request`, `slo`.
    pub(crate) deadlines: Deadlines,
    /// Predicted rounds, whose scores are added; the paper predicts one.
    /// Range: 1 to 3.
    pub(crate) lookahead: u32,
    /// Prefers the queues whose service makes the fewest requests late; not in the paper.
    pub(crate) protect: bool,
    /// Symphony's batches start this much before the last moment; in the paper 0.
    /// Range: 0 to 1000000.
    pub(crate) margin_us: f64,
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
    /// Deferred batching: each queue waits until its oldest task must start; last exit.
    Symphony,
    /// Longest queue, deepest exit in time.
    EarlyExitLqf,
    /// Least slack, deepest exit in time.
    EarlyExitEdf,
    /// Stability score, last exit.
    AllFinalDeadlineAware,
}

/// The rule that selects the queue to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueSelection {
    /// Lowest predicted stability score (eq. 7).
    LowestScore,
    /// Most waiting tasks.
    LongestQueue,
    /// Least slack of the most urgent task.
    EarliestDeadline,
    /// Only batches that must start or are full, the most urgent first.
    Deferred,
}

/// The exit of its ladder that a batch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitRule {
    /// The deepest with which no task of the batch misses its SLO; otherwise the shallowest (eq.
    /// 6).
    DeepestInTime,
    /// The deepest.
    Final,
    /// The shallowest.
    Early,
}

/// The reference of a request's urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Deadlines {
    /// Its own deadline.
    Request,
    /// Its waiting time and its app's SLO, as in the paper.
    Slo,
}

impl Default for StabilitySettings {
    #[expect(
        clippy::approx_constant,
        reason = "the table of settings is made from literals"
    )]
    fn default() -> Self {
        Self {
            policy: PolicyName::Stability,
            batch_max: 10,
            clip: 2.718_281_828_459_045,
            exits: None,
            deadlines: Deadlines::Request,
            lookahead: 1,
            protect: false,
            margin_us: 2_000.0,
        }
    }
}

// === impl StabilitySettings ===

impl StabilitySettings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first setting out of range, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        require(settings.batch_max > 0, "batch_max", "must be 1 or more")?;
        let is_positive = settings.clip.is_finite() && settings.clip > 0.0;
        require(is_positive, "clip", "must be above 0")?;
        let looks = (1..=LOOKAHEAD_MAX).contains(&settings.lookahead);
        require(looks, "lookahead", "must be 1 to 3")?;
        let has_margin = (0.0..=MARGIN_MAX_US).contains(&settings.margin_us);
        require(has_margin, "margin_us", "must be 0 to 1000000")?;
        Ok(settings)
    }

    /// Whether an exit that is not its variant's last may be used.
    pub(crate) fn uses_exit(&self, name: &str) -> bool {
        let named = self.exits.as_ref();
        named.is_none_or(|names| names.iter().any(|known| known == name))
    }
}

// === impl PolicyName ===

impl PolicyName {
    pub(crate) fn selection(self) -> QueueSelection {
        match self {
            Self::Stability | Self::AllFinalDeadlineAware => QueueSelection::LowestScore,
            Self::AllFinal | Self::AllEarly | Self::EarlyExitLqf => QueueSelection::LongestQueue,
            Self::EarlyExitEdf => QueueSelection::EarliestDeadline,
            Self::Symphony => QueueSelection::Deferred,
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
            let error = StabilitySettings::try_new(json).unwrap_err();
            assert!(
                error.starts_with(&format!("settings: {field}: ")),
                "{error}"
            );
        }
        assert_eq!(
            StabilitySettings::try_new("{}"),
            Ok(StabilitySettings::default())
        );
    }

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), StabilitySettings::try_new);
    }
}
