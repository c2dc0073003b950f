//! The policy's own JSON.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// Largest `tau`: beyond it the number of orders alone explodes.
const TAU_MAX: usize = 8;

/// A combination of order and selection (section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Algorithm {
    /// Algorithm 1 with all that section 5.3 adds.
    #[default]
    Sneakpeek,
    /// Algorithm 1.
    Grouped,
    /// One request at a time: highest priority first (eq. 12), locally optimal (eq. 13).
    LoPriority,
    /// One request at a time: earliest deadline first, locally optimal.
    LoEdf,
    /// One request at a time: earliest deadline first, the most accurate model.
    MaxAccEdf,
}

/// What can be chosen. The paper's algorithm is the default; the switches make its ablations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// In what order, and with which model.
    pub(crate) algorithm: Algorithm,
    /// While all workers are busy the schedule is made anew this often, in milliseconds, to
    /// answer from evidence what would otherwise be late.
    pub(crate) window_ms: f64,
    /// A batch is committed to a worker at most this long before it can start, in
    /// milliseconds. What is not committed can still be regrouped.
    pub(crate) lookahead_ms: f64,
    /// Up to so many groups are scheduled exactly (Algorithm 1).
    pub(crate) tau: usize,
    /// Bound of the exact search; when it is reached, the best schedule found so far counts.
    pub(crate) nodes_max: u32,
    /// Accuracy from each request's evidence (section 4); off: profiled accuracy.
    data_aware: Option<bool>,
    /// The SneakPeek model is a candidate (section 5.3.1).
    short_circuit: Option<bool>,
    /// Groups are split by the likely label (section 5.3.2).
    label_split: Option<bool>,
    /// Time has the price that those who are yet to come would pay for it (see `price`).
    pub(crate) foresight: bool,
    /// Each exit of a variant is a model of its own; off: last exits only.
    pub(crate) exits: bool,
    /// Loading a variant that is not resident takes time (eq. 1).
    pub(crate) charge_swap: bool,
    /// Largest group; none: the largest batch that any of the app's models takes.
    pub(crate) group_max: Option<usize>,
    /// Time that counts as 1 in the priority's exp(-d) (eq. 12), in milliseconds.
    pub(crate) priority_unit_ms: f64,
    /// Requests that can no longer be worth anything wait for a worker with nothing else to
    /// do, but one batch of them goes first when they have waited this long past their
    /// deadlines, in milliseconds.
    pub(crate) lost_wait_ms: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            window_ms: 5.0,
            lookahead_ms: 1.0,
            tau: 4,
            nodes_max: 20_000,
            data_aware: None,
            short_circuit: None,
            label_split: None,
            foresight: false,
            exits: true,
            charge_swap: true,
            group_max: None,
            priority_unit_ms: 1_000.0,
            lost_wait_ms: 1_000.0,
        }
    }
}

// === impl Algorithm ===

impl Algorithm {
    /// Whether requests of an app are scheduled together.
    pub(crate) fn groups(self) -> bool {
        matches!(self, Self::Sneakpeek | Self::Grouped)
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
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let length = |value: f64| value.is_finite() && value >= 0.0;
        require(
            positive(settings.window_ms),
            "window_ms",
            "must be positive",
        )?;
        require(
            length(settings.lookahead_ms),
            "lookahead_ms",
            "must not be negative",
        )?;
        require(settings.tau <= TAU_MAX, "tau", "must be at most 8")?;
        require(
            positive(settings.priority_unit_ms),
            "priority_unit_ms",
            "must be positive",
        )?;
        require(
            length(settings.lost_wait_ms),
            "lost_wait_ms",
            "must not be negative",
        )?;
        require(
            settings.group_max != Some(0),
            "group_max",
            "must be at least 1",
        )?;
        Ok(settings)
    }

    pub(crate) fn is_data_aware(&self) -> bool {
        self.switch(self.data_aware)
    }

    pub(crate) fn short_circuits(&self) -> bool {
        self.switch(self.short_circuit)
    }

    /// One request at a time has no groups to split.
    pub(crate) fn splits_by_label(&self) -> bool {
        self.algorithm.groups() && self.switch(self.label_split)
    }

    /// What is not said is as the algorithm has it: on in SneakPeek, off in the baselines.
    fn switch(&self, said: Option<bool>) -> bool {
        said.unwrap_or(self.algorithm == Algorithm::Sneakpeek)
    }

    pub(crate) fn window_us(&self) -> u64 {
        micros(self.window_ms).max(1)
    }

    pub(crate) fn lookahead_us(&self) -> u64 {
        micros(self.lookahead_ms)
    }

    pub(crate) fn lost_wait_us(&self) -> u64 {
        micros(self.lost_wait_ms)
    }

    pub(crate) fn priority_unit_us(&self) -> f64 {
        self.priority_unit_ms * 1e3
    }
}

fn micros(ms: f64) -> u64 {
    // Saturates; the fields are checked to be finite and not negative.
    (ms * 1e3) as u64
}

#[cfg(test)]
mod tests {
    use switchyard_sdk::testing::check_documented;

    use super::*;

    #[test]
    fn errors_name_the_field() {
        for (json, field) in [
            (r#"{"tau": 9}"#, "tau"),
            (r#"{"window_ms": 0}"#, "window_ms"),
            (r#"{"priority_unit_ms": -1}"#, "priority_unit_ms"),
            (r#"{"group_max": 0}"#, "group_max"),
            (r#"{"data_aware": 1}"#, "data_aware"),
            (r#"{"algorithm": "lo"}"#, "algorithm"),
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
