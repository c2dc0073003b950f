//! The policy's settings.

use std::collections::BTreeMap;

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// The settings of ppo-router; slot, capacity and variants come with the weights.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PpoRouterSettings {
    /// Weights file in the policy's folder, `ppo-router/` next to `ppo-router.wasm`.
    pub(crate) weights: String,
    /// Worker name to variant name; by default the first workers serve the weights' instances, in
    /// order.
    /// Range: names of the catalog.
    pub(crate) instances: BTreeMap<String, String>,
    /// Arrivals per second in each phase of the workload, for weights that observe the phase.
    /// Range: above 0.
    pub(crate) rates: Vec<f64>,
    /// Variant name to smallest and largest batch, for weights without batch bounds.
    /// A batch smaller than the smallest waits.
    /// Range: 1 or more, ascending.
    pub(crate) batches: BTreeMap<String, [u32; 2]>,
}

impl Default for PpoRouterSettings {
    fn default() -> Self {
        Self {
            weights: "default/policy.safetensors".to_owned(),
            instances: BTreeMap::new(),
            rates: vec![180.0, 10.0],
            batches: BTreeMap::new(),
        }
    }
}

// === impl PpoRouterSettings ===

impl PpoRouterSettings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first setting out of range, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        let positive = |rate: &f64| rate.is_finite() && *rate > 0.0;
        let are_rates = settings.rates.iter().all(positive);
        require(are_rates, "rates", "must be above 0")?;
        let ascend = |[min, max]: &[u32; 2]| *min > 0 && min <= max;
        let do_ascend = settings.batches.values().all(ascend);
        require(do_ascend, "batches", "must be 1 or more and ascend")?;
        Ok(settings)
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
            (r#"{"weights": 1}"#, "weights"),
            (r#"{"instances": 3}"#, "instances"),
            (r#"{"rates": [0]}"#, "rates"),
            (r#"{"batches": {"heavy": [3, 1]}}"#, "batches"),
        ] {
            let error = PpoRouterSettings::try_new(json).unwrap_err();
            assert!(
                error.starts_with(&format!("settings: {field}: ")),
                "{error}"
            );
        }
        assert_eq!(
            PpoRouterSettings::try_new("{}"),
            Ok(PpoRouterSettings::default())
        );
    }

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), PpoRouterSettings::try_new);
    }
}
