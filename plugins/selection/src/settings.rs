//! The policy's settings.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// The selection of the model (RAMSIS sections 7 and 8, appendix H).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SelectionAlgorithm {
    /// The most accurate model that sustains the load and takes at most half the SLO.
    Jellyfish,
    /// The most accurate model whose measured p99 response latency at the load is below the SLO.
    ModelSwitching,
    /// The fastest model that is accurate enough.
    Infaas,
    /// The most accurate model that is in time, batch by batch.
    Greedy,
}

/// The settings of selection.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SelectionSettings {
    /// The selection of the model.
    /// Range: `jellyfish`, `model-switching`, `infaas`, `greedy`.
    pub(crate) algorithm: SelectionAlgorithm,
    /// The load in requests per second; by default that of the last 500 ms.
    /// Range: 0 or more.
    pub(crate) load_per_s: Option<f64>,
    /// Jellyfish+: a model must sustain the load times this factor.
    /// Range: above 0.
    pub(crate) headroom: f64,
    /// Jellyfish+: round the load up to a multiple of this; 0: do not.
    /// Range: 0 or more.
    pub(crate) load_step: f64,
    /// ModelSwitching: folder of `responses.json` in `selection/`, the policy's artifacts.
    pub(crate) responses: String,
    /// INFaaS: the required accuracy.
    /// Range: 0 to 1.
    pub(crate) accuracy: f64,
}

impl Default for SelectionSettings {
    fn default() -> Self {
        Self {
            algorithm: SelectionAlgorithm::Jellyfish,
            load_per_s: None,
            headroom: 1.05,
            load_step: 0.0,
            responses: String::new(),
            accuracy: 0.0,
        }
    }
}

// === impl SelectionSettings ===

impl SelectionSettings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first setting out of range, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        let is_load = |load: f64| load.is_finite() && load >= 0.0;
        require(
            settings.load_per_s.is_none_or(is_load),
            "load_per_s",
            "must be 0 or more",
        )?;
        let is_factor = settings.headroom.is_finite() && settings.headroom > 0.0;
        require(is_factor, "headroom", "must be above 0")?;
        require(
            is_load(settings.load_step),
            "load_step",
            "must be 0 or more",
        )?;
        let is_share = (0.0..=1.0).contains(&settings.accuracy);
        require(is_share, "accuracy", "must be 0 to 1")?;
        Ok(settings)
    }

    /// The load for which Jellyfish+ selects.
    pub(crate) fn stepped(&self, load_rps: f64) -> f64 {
        match self.load_step > 0.0 {
            true => (load_rps / self.load_step).ceil() * self.load_step,
            false => load_rps,
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_sdk::testing::check_documented;

    use super::*;

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), SelectionSettings::try_new);
    }

    #[test]
    fn loads_are_rounded_up_to_a_step() {
        let stepped = |json: &str, load| SelectionSettings::try_new(json).unwrap().stepped(load);
        assert_eq!(stepped("{}", 1_001.0), 1_001.0);
        assert_eq!(stepped(r#"{"load_step": 200}"#, 1_001.0), 1_200.0);
        assert_eq!(stepped(r#"{"load_step": 200}"#, 1_200.0), 1_200.0);
        assert!(SelectionSettings::try_new(r#"{"load_step": -1}"#).is_err());
    }
}
