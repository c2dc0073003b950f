//! The policy's settings.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// The policy's JSON.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct YardmasterSettings {
    /// Share that is added to profiled latencies, for batches that take longer than the profile.
    /// Range: 0 to 4.
    pub(crate) margin: f64,
    /// Utility of an answer in time in addition to its accuracy: the larger, the more accuracy is given up
    /// for one late answer less.
    /// Range: 0 to 100.
    pub(crate) punctuality: f64,
    /// Utility that a wait of one SLO costs: with equal utility the schedule of the shorter waits is chosen.
    /// Range: 0 to 1.
    pub(crate) wait_cost: f64,
    /// Arrivals of this many SLOs share the workers with the pending requests in the price of time.
    /// Range: above 0, at most 100.
    pub(crate) horizon: f64,
    /// Share of the workers' time that is sold; the rest absorbs uneven arrivals.
    /// Range: above 0, at most 1.
    pub(crate) fill: f64,
    /// Largest number of utilities that the search computes in one window, about; then the best so far is used.
    /// Range: 1 or more.
    pub(crate) nodes_max: u32,
    /// Largest number of requests per app that a schedule looks at.
    /// Range: 1 to 4096.
    pub(crate) depth: u32,
}

impl Default for YardmasterSettings {
    fn default() -> Self {
        Self {
            margin: 0.0,
            punctuality: 3.0,
            wait_cost: 0.01,
            horizon: 1.0,
            fill: 1.0,
            nodes_max: 12_000,
            depth: 32,
        }
    }
}

// === impl YardmasterSettings ===

impl YardmasterSettings {
    /// Parses and checks.
    ///
    /// # Errors
    /// The first setting out of range, by name.
    pub(crate) fn try_new(json: &str) -> Result<Self, String> {
        let settings: Self = parse(json)?;
        let within = |value: f64, low: f64, high: f64| value >= low && value <= high;
        let Self {
            margin,
            punctuality,
            wait_cost,
            horizon,
            fill,
            nodes_max,
            depth,
        } = settings;
        require(within(margin, 0.0, 4.0), "margin", "must be 0 to 4")?;
        require(
            within(punctuality, 0.0, 100.0),
            "punctuality",
            "must be 0 to 100",
        )?;
        require(within(wait_cost, 0.0, 1.0), "wait_cost", "must be 0 to 1")?;
        require(
            horizon > 0.0 && horizon <= 100.0,
            "horizon",
            "must be above 0 and at most 100",
        )?;
        require(
            fill > 0.0 && fill <= 1.0,
            "fill",
            "must be above 0 and at most 1",
        )?;
        require(nodes_max > 0, "nodes_max", "must be 1 or more")?;
        require((1..=4096).contains(&depth), "depth", "must be 1 to 4096")?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use switchyard_sdk::testing::check_documented;

    use super::*;

    #[test]
    fn errors_name_the_field() {
        for (json, field) in [
            (r#"{"margin": -1}"#, "margin"),
            (r#"{"punctuality": 101}"#, "punctuality"),
            (r#"{"wait_cost": 2}"#, "wait_cost"),
            (r#"{"horizon": 0}"#, "horizon"),
            (r#"{"fill": 0}"#, "fill"),
            (r#"{"nodes_max": 0}"#, "nodes_max"),
            (r#"{"depth": 0}"#, "depth"),
        ] {
            let error = YardmasterSettings::try_new(json).unwrap_err();
            assert!(
                error.starts_with(&format!("settings: {field}: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), YardmasterSettings::try_new);
    }
}
