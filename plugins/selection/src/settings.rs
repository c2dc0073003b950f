//! The policy's own JSON.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// How the model is selected (RAMSIS section 7 and appendix H).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Algorithm {
    /// The most accurate model that sustains the load and takes at most half the SLO.
    #[default]
    Jellyfish,
    /// The most accurate model whose 99th percentile of response latency, measured at the load,
    /// is below the SLO.
    ModelSwitching,
    /// The fastest model that is accurate enough.
    Infaas,
    /// The most accurate model that is in time now, batch by batch.
    Greedy,
}

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// How the model is selected.
    pub(crate) algorithm: Algorithm,
    /// The load in requests per second where it is known; none: the last 500 ms count.
    pub(crate) load_per_s: Option<f64>,
    /// Jellyfish+: a model must sustain the load times this.
    pub(crate) headroom: f64,
    /// ModelSwitching: folder of `responses.json` among the policy's artifacts.
    pub(crate) responses: String,
    /// INFaaS: the accuracy that is asked for, 0 to 1.
    pub(crate) accuracy: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            load_per_s: None,
            headroom: 1.05,
            responses: String::new(),
            accuracy: 0.0,
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
        let is_load = |load: f64| load.is_finite() && load >= 0.0;
        require(
            settings.load_per_s.is_none_or(is_load),
            "load_per_s",
            "must be a number from 0 on",
        )?;
        let is_factor = settings.headroom.is_finite() && settings.headroom > 0.0;
        require(is_factor, "headroom", "must be above 0")?;
        let is_share = (0.0..=1.0).contains(&settings.accuracy);
        require(is_share, "accuracy", "must be 0 to 1")?;
        Ok(settings)
    }
}
