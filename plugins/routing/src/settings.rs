//! The policy's settings.

use std::collections::BTreeMap;

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// The settings of routing; numbers default to the paper's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RoutingSettings {
    /// The baseline.
    /// Range: `lw`, `hw`, `hw-e`, `sq`, `sa`, `infaas`.
    pub(crate) algorithm: RoutingAlgorithm,
    /// Worker name to variant name, not for LW, HW and HW-E; by default variants share the workers,
    /// the most accurate first.
    /// Range: names of the catalog.
    pub(crate) instances: BTreeMap<String, String>,
    /// Not SQ: requests that an instance holds, with the one in service (c in section 3.1.3).
    /// HW-E is also limited by the workers' `queue_max`, SQ only by the pool's `pending_max`.
    /// Range: 2 or more.
    pub(crate) capacity: u32,
    /// SA and INFaaS: interval of new shares.
    /// Range: 1 ms or more.
    pub(crate) slot_ms: u32,
    /// SA: arrivals per second in each phase of the workload.
    /// Range: one or more, above 0.
    pub(crate) rates: Vec<f64>,
    /// SA: share of requests that may be late.
    /// Range: 0 to 1.
    pub(crate) late_max: f64,
    /// SQ: an idle heavy instance goes first always, or only before the last idle light one.
    /// Range: `heavy`, `last-pair`.
    pub(crate) prefer: Prefer,
}

/// The baselines of section 5.1.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RoutingAlgorithm {
    /// The light variant on all workers, equal shares.
    Lw,
    /// The heavy variant on all workers, equal shares.
    Hw,
    /// HW that rejects requests that will be late.
    HwE,
    /// One queue for all instances.
    Sq,
    /// The best fixed shares per phase, by the M/D/1 queue.
    Sa,
    /// Equal shares for all instances that are not overloaded.
    Infaas,
}

/// SQ: the idle instance that takes the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Prefer {
    /// A heavy instance if one is idle.
    Heavy,
    /// The heavy instance if exactly one heavy and one light are idle; otherwise any.
    LastPair,
}

impl Default for RoutingSettings {
    fn default() -> Self {
        Self {
            algorithm: RoutingAlgorithm::Sq,
            instances: BTreeMap::new(),
            capacity: 15,
            slot_ms: 100,
            rates: vec![180.0, 10.0],
            late_max: 0.02,
            prefer: Prefer::Heavy,
        }
    }
}

// === impl RoutingSettings ===

impl RoutingSettings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first setting out of range, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        require(settings.capacity >= 2, "capacity", "must be 2 or more")?;
        require(settings.slot_ms > 0, "slot_ms", "must be 1 or more")?;
        let positive = |rate: &f64| rate.is_finite() && *rate > 0.0;
        let are_rates = !settings.rates.is_empty() && settings.rates.iter().all(positive);
        require(are_rates, "rates", "must be one or more numbers above 0")?;
        let is_share = (0.0..=1.0).contains(&settings.late_max);
        require(is_share, "late_max", "must be 0 to 1")?;
        Ok(settings)
    }

    pub(crate) fn slot_us(&self) -> u64 {
        u64::from(self.slot_ms) * 1_000
    }

    /// Requests that may wait in an instance; the contract counts the one in service separately.
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
            let error = RoutingSettings::try_new(json).unwrap_err();
            assert!(
                error.starts_with(&format!("settings: {field}: ")),
                "{error}"
            );
        }
        assert_eq!(
            RoutingSettings::try_new("{}"),
            Ok(RoutingSettings::default())
        );
    }

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), RoutingSettings::try_new);
    }
}
