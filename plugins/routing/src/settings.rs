//! The policy's settings.

use std::collections::BTreeMap;

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// What can be chosen. Numbers default to the paper's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Which baseline.
    pub(crate) algorithm: Algorithm,
    /// Worker to variant; without any, variants share the workers. LW, HW and HW-E have one
    /// variant on all workers instead.
    pub(crate) instances: BTreeMap<String, String>,
    /// Requests that an instance holds, the one in service included (c in section 3.1.3).
    pub(crate) capacity: u32,
    /// Length of a slot of SA and INFaaS.
    pub(crate) slot_ms: u32,
    /// SA: arrivals per second of each of the workload's phases.
    pub(crate) rates: Vec<f64>,
    /// SA: share of an app's requests that may be late.
    pub(crate) late_max: f64,
    /// SQ: when a heavy instance goes before a light one.
    pub(crate) prefer: Prefer,
}

/// The baselines of section 5.1.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Algorithm {
    /// The light variant only, balanced.
    Lw,
    /// The heavy variant only, balanced.
    Hw,
    /// HW without those that will be late.
    HwE,
    /// One queue for all instances.
    Sq,
    /// The best fixed distribution of each phase, by the M/D/1 queue.
    Sa,
    /// Equal shares for all that are not overloaded.
    Infaas,
}

/// SQ: which idle instance takes the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Prefer {
    /// A heavy one, whenever one is idle.
    Heavy,
    /// The heavy one where two are idle, one of each; else any.
    LastPair,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Sq,
            instances: BTreeMap::new(),
            capacity: 15,
            slot_ms: 100,
            rates: vec![180.0, 10.0],
            late_max: 0.02,
            prefer: Prefer::Heavy,
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
        require(settings.capacity >= 2, "capacity", "must be at least 2")?;
        require(settings.slot_ms > 0, "slot_ms", "must be at least 1")?;
        let positive = |rate: &f64| rate.is_finite() && *rate > 0.0;
        let are_rates = !settings.rates.is_empty() && settings.rates.iter().all(positive);
        require(are_rates, "rates", "must be positive, and one at least")?;
        let is_share = (0.0..=1.0).contains(&settings.late_max);
        require(is_share, "late_max", "must be 0 to 1")?;
        Ok(settings)
    }

    pub(crate) fn slot_us(&self) -> u64 {
        u64::from(self.slot_ms) * 1_000
    }

    /// Requests that may wait in an instance: the contract counts the one in service apart.
    pub(crate) fn waiting_max(&self) -> u32 {
        self.capacity - 1
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
            (r#"{"algorithm": "lqf"}"#, "algorithm"),
            (r#"{"instances": 3}"#, "instances"),
            (r#"{"capacity": 1}"#, "capacity"),
            (r#"{"slot_ms": 0}"#, "slot_ms"),
            (r#"{"rates": [10, -1]}"#, "rates"),
            (r#"{"rates": []}"#, "rates"),
            (r#"{"late_max": 2}"#, "late_max"),
            (r#"{"prefer": "light"}"#, "prefer"),
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
