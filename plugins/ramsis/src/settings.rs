//! The policy's own JSON.

use serde::Deserialize;
use switchyard_sdk::settings::{parse, require};

/// What can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Folders of tables among the policy's artifacts; of those that fit the pool the first ones
    /// serve.
    tables: Folders,
    /// The load in requests per second of each app where it is known; none: the last 500 ms count.
    pub(crate) load_per_s: Option<f64>,
}

/// One folder or several.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Folders {
    One(String),
    Several(Vec<String>),
}

impl Default for Folders {
    fn default() -> Self {
        Self::Several(Vec::new())
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
        let mut folders = settings.folders().iter();
        let is_named = folders.all(|folder| !folder.trim_end_matches('/').is_empty());
        require(is_named, "tables", "must name folders")?;
        Ok(settings)
    }

    /// The folders of tables, in order.
    pub(crate) fn folders(&self) -> &[String] {
        match &self.tables {
            Folders::One(folder) => std::slice::from_ref(folder),
            Folders::Several(folders) => folders,
        }
    }
}
