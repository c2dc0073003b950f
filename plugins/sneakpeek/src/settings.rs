//! The policy's settings.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// Upper bound of the setting `tau`: the number of orders grows with its factorial.
const TAU_MAX: usize = 8;

/// The order of requests and the selection of models (section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SneakPeekAlgorithm {
    /// Algorithm 1 with the extensions of section 5.3.
    Sneakpeek,
    /// Algorithm 1.
    Grouped,
    /// Single requests by priority (eq. 12), locally optimal model (eq. 13).
    LoPriority,
    /// Single requests by deadline, locally optimal model.
    LoEdf,
    /// Single requests by deadline, most accurate model.
    MaxAccEdf,
}

/// When schedules are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScheduleAt {
    /// When a worker is idle; only the batches that start now are committed.
    Idle,
    /// At the end of each window, for the requests that arrived in it; the whole schedule is
    /// committed (section 2).
    WindowEnd,
}

/// The settings of sneakpeek. The default is the paper's algorithm; the switches make its
/// ablations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SneakPeekSettings {
    /// The order of requests and the selection of models.
    /// Range: `sneakpeek`, `grouped`, `lo-priority`, `lo-edf`, `max-acc-edf`.
    pub(crate) algorithm: SneakPeekAlgorithm,
    /// When schedules are made: for idle workers, or at the end of each window, as in the paper; then
    /// the whole schedule is committed.
    /// Range: `idle`, `window-end`.
    pub(crate) schedule_at: ScheduleAt,
    /// Length of a window; with `idle` the interval of new schedules while all workers are busy.
    /// Range: above 0 ms.
    pub(crate) window_ms: f64,
    /// A batch is committed at most this long before its start; other requests can be regrouped.
    /// Range: 0 ms or more.
    pub(crate) lookahead_ms: f64,
    /// Largest number of groups that is scheduled exactly (Algorithm 1).
    /// Range: 0 to 8.
    pub(crate) tau: usize,
    /// Largest number of nodes of the exact search; then the best schedule so far is used.
    /// Range: 0 or more.
    pub(crate) nodes_max: u32,
    /// Accuracy comes from the evidence of each request (section 4) instead of the profile.
    /// None: on for `sneakpeek`, otherwise off.
    data_aware: Option<bool>,
    /// The SneakPeek model is a candidate (section 5.3.1).
    /// None: on for `sneakpeek`, otherwise off.
    short_circuit: Option<bool>,
    /// Groups are split by likely label (section 5.3.2).
    /// None: on for `sneakpeek`, otherwise off.
    label_split: Option<bool>,
    /// Groups of one app are merged if that raises the utility: those with the same model in the
    /// schedule of split groups, or all. Schedules more groups than `tau` well.
    pub(crate) merge: bool,
    /// Adjacent requests of a baseline with the same model run as one batch.
    pub(crate) opportunistic: bool,
    /// A worker's time has a price, to save time for later arrivals; not in the paper.
    pub(crate) foresight: bool,
    /// Each exit of a variant is a candidate model; otherwise only the last.
    pub(crate) exits: bool,
    /// Load time counts for variants that are not resident (eq. 1).
    pub(crate) charge_swap: bool,
    /// Largest group; by default the largest batch of any model of the app.
    /// Range: 1 or more.
    pub(crate) group_max: Option<usize>,
    /// Unit of d in the exp(-d) of the priority (eq. 12).
    /// Range: above 0 ms.
    pub(crate) priority_unit_ms: f64,
    /// Requests of utility 0 wait for an idle worker, but at most this long past their deadlines.
    /// Then one batch of them goes first, once per such interval.
    /// Range: 0 ms or more.
    pub(crate) lost_wait_ms: f64,
}

impl Default for SneakPeekSettings {
    fn default() -> Self {
        Self {
            algorithm: SneakPeekAlgorithm::Sneakpeek,
            schedule_at: ScheduleAt::Idle,
            window_ms: 5.0,
            lookahead_ms: 1.0,
            tau: 4,
            nodes_max: 20_000,
            data_aware: None,
            short_circuit: None,
            label_split: None,
            merge: false,
            opportunistic: false,
            foresight: false,
            exits: true,
            charge_swap: true,
            group_max: None,
            priority_unit_ms: 1_000.0,
            lost_wait_ms: 1_000.0,
        }
    }
}

// === impl SneakPeekAlgorithm ===

impl SneakPeekAlgorithm {
    /// Whether requests are scheduled in groups.
    pub(crate) fn groups(self) -> bool {
        matches!(self, Self::Sneakpeek | Self::Grouped)
    }
}

// === impl SneakPeekSettings ===

impl SneakPeekSettings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first setting out of range, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let length = |value: f64| value.is_finite() && value >= 0.0;
        require(positive(settings.window_ms), "window_ms", "must be above 0")?;
        require(
            length(settings.lookahead_ms),
            "lookahead_ms",
            "must be 0 or more",
        )?;
        require(settings.tau <= TAU_MAX, "tau", "must be 0 to 8")?;
        require(
            positive(settings.priority_unit_ms),
            "priority_unit_ms",
            "must be above 0",
        )?;
        require(
            length(settings.lost_wait_ms),
            "lost_wait_ms",
            "must be 0 or more",
        )?;
        require(
            settings.group_max != Some(0),
            "group_max",
            "must be 1 or more",
        )?;
        require(
            settings.algorithm.groups() || !settings.merge,
            "merge",
            "must be false unless algorithm is sneakpeek or grouped",
        )?;
        require(
            !settings.algorithm.groups() || !settings.opportunistic,
            "opportunistic",
            "must be false unless algorithm is lo-priority, lo-edf or max-acc-edf",
        )?;
        Ok(settings)
    }

    pub(crate) fn is_data_aware(&self) -> bool {
        self.switch(self.data_aware)
    }

    pub(crate) fn short_circuits(&self) -> bool {
        self.switch(self.short_circuit)
    }

    pub(crate) fn splits_by_label(&self) -> bool {
        self.algorithm.groups() && self.switch(self.label_split)
    }

    /// By default on for SneakPeek and off for the baselines.
    fn switch(&self, set: Option<bool>) -> bool {
        set.unwrap_or(self.algorithm == SneakPeekAlgorithm::Sneakpeek)
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
    // Saturates; `try_new` checked that the value is finite and not negative.
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
            (r#"{"schedule_at": "start"}"#, "schedule_at"),
            (r#"{"algorithm": "lo-edf", "merge": true}"#, "merge"),
            (r#"{"opportunistic": true}"#, "opportunistic"),
        ] {
            let error = SneakPeekSettings::try_new(json).unwrap_err();
            assert!(
                error.starts_with(&format!("settings: {field}: ")),
                "{error}"
            );
        }
        assert_eq!(
            SneakPeekSettings::try_new("{}"),
            Ok(SneakPeekSettings::default())
        );
    }

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), SneakPeekSettings::try_new);
    }
}
