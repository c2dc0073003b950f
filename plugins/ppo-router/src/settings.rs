//! The policy's settings.

use std::collections::BTreeMap;

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// What can be chosen; everything else came with the weights.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// A file in the policy's folder.
    pub(crate) weights: String,
    /// Worker to variant; without any, workers serve what the weights were trained for, in turn.
    pub(crate) instances: BTreeMap<String, String>,
    /// Arrivals per second of each of the workload's phases, for weights that want to know the
    /// phase.
    pub(crate) rates: Vec<f64>,
    /// Variant to its smallest and its largest batch, for weights that choose none.
    pub(crate) batches: BTreeMap<String, [u32; 2]>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            weights: "default/policy.safetensors".to_owned(),
            instances: BTreeMap::new(),
            rates: vec![180.0, 10.0],
            batches: BTreeMap::new(),
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
        let positive = |rate: &f64| rate.is_finite() && *rate > 0.0;
        let are_rates = settings.rates.iter().all(positive);
        require(are_rates, "rates", "must be positive")?;
        let ascend = |[min, max]: &[u32; 2]| *min > 0 && min <= max;
        let do_ascend = settings.batches.values().all(ascend);
        require(do_ascend, "batches", "must be positive and ascend")?;
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
