//! The policy's settings.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

use crate::score::Rule;

/// Tasks of one window at most; what is beyond waits for the next one.
pub(crate) const TASKS_MAX: usize = 64;

/// Parts that a run can be cut into.
const SLICES_MAX: usize = 64;

/// What can be chosen. Numbers are the paper's where it has any.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Which of the paper's schedulers.
    pub(crate) algorithm: Algorithm,
    /// Length of a scheduling window.
    pub(crate) interval_ms: f64,
    /// Do not wait for the window's end while a worker is idle.
    pub(crate) eager: bool,
    /// Which of an app's variants is the model.
    pub(crate) model: ModelChoice,
    /// Up to so many tasks a window is searched exactly.
    pub(crate) exact_max: usize,
    /// Bound of that search, in nodes.
    pub(crate) nodes_max: usize,
    /// When long runs are cut.
    pub(crate) slicing: Slicing,
    /// Parts that a long run is cut into.
    pub(crate) slices: usize,
    /// A run is long when it takes so many times what the shortest app takes.
    pub(crate) slice_over: f64,
    /// For how long slicing stays on after it last helped.
    pub(crate) slice_hold_ms: f64,
    /// What waits in queues is planned again in each window; not in the paper.
    pub(crate) replan: bool,
}

/// The schedulers of sections 3.2 and 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Algorithm {
    /// Minimum average expected latency (Algorithm 1).
    Mael,
    /// With SLOs (Algorithm 2).
    SloMael,
    /// With slicing (Algorithm 3).
    PsloMael,
    /// Each task to its fastest processor.
    Aff,
    /// Each task to the shortest queue.
    Availability,
    /// Each task to the processor that needs the least energy for it.
    Enr,
}

/// When PSLO-MAEL cuts long runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Slicing {
    /// While SliceMode is on.
    Auto,
    /// Always, which shows what it costs.
    Always,
}

/// Which variant of an app is its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ModelChoice {
    /// The most accurate one that the worker can run.
    Accurate,
    /// The fastest there.
    Fast,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Mael,
            interval_ms: 10.0,
            eager: true,
            model: ModelChoice::Accurate,
            exact_max: 12,
            nodes_max: 400,
            slicing: Slicing::Auto,
            slices: 4,
            slice_over: 3.0,
            slice_hold_ms: 1_000.0,
            replan: false,
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
        let is_length = |ms: f64| (0.0..=60_000.0).contains(&ms);
        let must = "must be 0 to 60000";
        require(is_length(settings.interval_ms), "interval_ms", must)?;
        require(is_length(settings.slice_hold_ms), "slice_hold_ms", must)?;
        let fits = settings.exact_max <= TASKS_MAX;
        require(fits, "exact_max", "must be 64 at most")?;
        let cuts = (2..=SLICES_MAX).contains(&settings.slices);
        require(cuts, "slices", "must be 2 to 64")?;
        let is_over = settings.slice_over.is_finite() && settings.slice_over >= 1.0;
        require(is_over, "slice_over", "must be at least 1")?;
        let searches = settings.algorithm.rule().is_some() || !settings.replan;
        require(searches, "replan", "is for MAEL and its kin only")?;
        Ok(settings)
    }

    pub(crate) fn interval_us(&self) -> u64 {
        (self.interval_ms * 1e3) as u64
    }

    pub(crate) fn slice_hold_us(&self) -> u64 {
        (self.slice_hold_ms * 1e3) as u64
    }
}

// === impl Algorithm ===

impl Algorithm {
    /// How it scores candidates; none for those that compare none.
    pub(crate) fn rule(self) -> Option<Rule> {
        match self {
            Self::Mael => Some(Rule::Latency),
            Self::SloMael | Self::PsloMael => Some(Rule::Slo),
            Self::Aff | Self::Availability | Self::Enr => None,
        }
    }

    pub(crate) fn slices(self) -> bool {
        self == Self::PsloMael
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
            (r#"{"algorithm": "edf"}"#, "algorithm"),
            (r#"{"interval_ms": -1}"#, "interval_ms"),
            (r#"{"eager": 1}"#, "eager"),
            (r#"{"model": "best"}"#, "model"),
            (r#"{"exact_max": 65}"#, "exact_max"),
            (r#"{"slicing": "never"}"#, "slicing"),
            (r#"{"slices": 1}"#, "slices"),
            (r#"{"slice_over": 0.5}"#, "slice_over"),
            (r#"{"slice_hold_ms": 1e9}"#, "slice_hold_ms"),
            (r#"{"algorithm": "aff", "replan": true}"#, "replan"),
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
