//! The policy's settings.

use serde::{Deserialize, Deserializer};
use switchyard_sdk::settings::{parse, require};

/// The settings of ramsis.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RamsisSettings {
    /// Folders of tables in `ramsis/`, the policy's artifacts, or the name of one; the first that
    /// fit the pool are used.
    #[serde(deserialize_with = "one_or_several")]
    pub(crate) tables: Vec<String>,
    /// A queue longer than the tables' N: the full state's batch, or the whole queue in one batch, as
    /// the paper's artifact does, up to the largest batch of the profile.
    /// Range: `batch`, `whole`.
    pub(crate) drain: Drain,
    /// The load of each app in requests per second; by default that of the last 500 ms.
    /// Range: 0 or more.
    pub(crate) load_per_s: Option<f64>,
}

/// The batch of a queue beyond the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Drain {
    /// That of the full state.
    Batch,
    /// The whole queue.
    Whole,
}

impl Default for RamsisSettings {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            drain: Drain::Batch,
            load_per_s: None,
        }
    }
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Folders {
        One(String),
        Several(Vec<String>),
    }

    Ok(match Folders::deserialize(deserializer)? {
        Folders::One(folder) => vec![folder],
        Folders::Several(folders) => folders,
    })
}

// === impl RamsisSettings ===

impl RamsisSettings {
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
        let mut folders = settings.tables.iter();
        let is_named = folders.all(|folder| !folder.trim_end_matches('/').is_empty());
        require(is_named, "tables", "must be names of folders")?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use switchyard_sdk::testing::check_documented;

    use super::*;

    #[test]
    fn the_readme_lists_every_setting_with_its_default() {
        check_documented(include_str!("../README.md"), RamsisSettings::try_new);
    }
}
