//! The policy's settings.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

use crate::score::ScoreRule;

/// Tasks of one window; further tasks wait for the next window.
pub(crate) const TASKS_MAX: usize = 64;

/// Upper bound of the setting `slices`.
const SLICES_MAX: usize = 64;

/// The settings of mael; defaults are the paper's values if it has any.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MaelSettings {
    /// The scheduler.
    /// Range: `mael`, `slo-mael`, `pslo-mael`, `aff`, `availability`, `enr`.
    pub(crate) algorithm: MaelAlgorithm,
    /// Length of a scheduling window; with 0 each arrival is one.
    /// Range: 0 to 60000 ms.
    pub(crate) interval_ms: f64,
    /// A window ends early when a worker is idle.
    pub(crate) eager: bool,
    /// The variant of an app on a worker: the most accurate or the fastest.
    /// Range: `accurate`, `fast`.
    pub(crate) model: ModelChoice,
    /// The wait of a mapping's tasks: with the tasks that it places on the worker before, or only
    /// pending ones, as Algorithm 1 prints it.
    /// Range: `placed`, `pending`.
    pub(crate) wait: WaitRule,
    /// Largest number of tasks that is searched exactly.
    /// Range: 0 to 64.
    pub(crate) exact_max: usize,
    /// Largest number of nodes of the exact search; then single moves improve the best mapping.
    /// Range: 0 or more.
    pub(crate) nodes_max: usize,
    /// When PSLO-MAEL cuts long tasks: while SliceMode is on, or always, to measure the cost of
    /// cutting.
    /// Range: `auto`, `always`.
    pub(crate) slicing: Slicing,
    /// Largest number of slices of a long task.
    /// Range: 2 to 64.
    pub(crate) slices: usize,
    /// A task is long if it takes at least this multiple of the shortest task of the catalog.
    /// Range: 1 or more.
    pub(crate) slice_over: f64,
    /// SliceMode stays on this long after it last helped.
    /// Range: 0 to 60000 ms.
    pub(crate) slice_hold_ms: f64,
    /// Queued tasks are mapped again in each window; not in the paper.
    /// Range: `true` only for `mael`, `slo-mael`, `pslo-mael`.
    pub(crate) replan: bool,
}

/// The schedulers of sections 3.2 and 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MaelAlgorithm {
    /// Minimum average expected latency (Algorithm 1).
    Mael,
    /// SLO violations first (Algorithm 2).
    SloMael,
    /// SLO-MAEL with slices (Algorithm 3).
    PsloMael,
    /// Affinity: each task on its fastest processor.
    Aff,
    /// Each task on the processor with the shortest queue.
    Availability,
    /// Each task on the processor with the least energy for it.
    Enr,
}

/// When PSLO-MAEL cuts long tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Slicing {
    /// While SliceMode is on.
    Auto,
    /// Always, to measure the cost of cutting.
    Always,
}

/// `wait_time(p)` of a candidate (Algorithm 1, line 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WaitRule {
    /// Pending tasks, and those of the candidate placed there before.
    Placed,
    /// Pending tasks.
    Pending,
}

/// The variant that serves an app on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ModelChoice {
    /// The most accurate variant that the worker can run.
    Accurate,
    /// The fastest variant that the worker can run.
    Fast,
}

impl Default for MaelSettings {
    fn default() -> Self {
        Self {
            algorithm: MaelAlgorithm::Mael,
            interval_ms: 10.0,
            eager: true,
            model: ModelChoice::Accurate,
            wait: WaitRule::Placed,
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

// === impl MaelSettings ===

impl MaelSettings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first setting out of range, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        let is_length = |ms: f64| (0.0..=60_000.0).contains(&ms);
        let must = "must be 0 to 60000";
        require(is_length(settings.interval_ms), "interval_ms", must)?;
        require(is_length(settings.slice_hold_ms), "slice_hold_ms", must)?;
        let fits = settings.exact_max <= TASKS_MAX;
        require(fits, "exact_max", "must be 0 to 64")?;
        let cuts = (2..=SLICES_MAX).contains(&settings.slices);
        require(cuts, "slices", "must be 2 to 64")?;
        let is_over = settings.slice_over.is_finite() && settings.slice_over >= 1.0;
        require(is_over, "slice_over", "must be 1 or more")?;
        let searches = settings.algorithm.rule().is_some() || !settings.replan;
        require(
            searches,
            "replan",
            "must be false unless algorithm is mael, slo-mael or pslo-mael",
        )?;
        Ok(settings)
    }

    pub(crate) fn interval_us(&self) -> u64 {
        (self.interval_ms * 1e3) as u64
    }

    pub(crate) fn slice_hold_us(&self) -> u64 {
        (self.slice_hold_ms * 1e3) as u64
    }
}

// === impl MaelAlgorithm ===

impl MaelAlgorithm {
    /// The score of its mappings; none for the baselines, which compare none.
    pub(crate) fn rule(self) -> Option<ScoreRule> {
        match self {
            Self::Mael => Some(ScoreRule::Latency),
            Self::SloMael | Self::PsloMael => Some(ScoreRule::Slo),
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
            (r#"{"wait": "none"}"#, "wait"),
            (r#"{"slicing": "never"}"#, "slicing"),
            (r#"{"slices": 1}"#, "slices"),
            (r#"{"slice_over": 0.5}"#, "slice_over"),
            (r#"{"slice_hold_ms": 1e9}"#, "slice_hold_ms"),
            (r#"{"algorithm": "aff", "replan": true}"#, "replan"),
        ] {
            let error = MaelSettings::try_new(json).unwrap_err();
            assert!(
                error.starts_with(&format!("settings: {field}: ")),
                "{error}"
            );
        }
        assert_eq!(MaelSettings::try_new("{}"), Ok(MaelSettings::default()));
    }

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), MaelSettings::try_new);
    }
}
