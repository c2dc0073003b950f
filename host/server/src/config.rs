//! The configuration: one TOML file, read once, checked whole, refused with the field's name.
//!
//! Every field is described in `docs/configuration.md`. Relative paths in a file are seen from
//! the folder of that file.

mod app;
mod check;
mod error;
mod policies;
mod pool;
mod profile;
mod server;
mod worker;

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use app::{AppConfig, EvidenceName, Late, PriorName};
pub use error::ConfigError;
pub use policies::PoliciesConfig;
use pool::names_file;
pub use pool::{FaultLimitConfig, PoolConfig, Preparation, RecordConfig, ShadowConfig};
pub use profile::{PercentileName, ProfileConfig};
pub use server::ServerConfig;
pub use worker::WorkerConfig;

/// The shipped demo configuration, which `serve` uses when it is given none.
pub const DEMO: &str = include_str!("../demo.toml");

/// Where [`DEMO`] is said to come from in messages.
pub const DEMO_NAME: &str = "the shipped demo configuration";

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `[server]`: listeners and limits.
    #[serde(default)]
    pub server: ServerConfig,
    /// `[[app]]`: what clients call models.
    #[serde(default, rename = "app")]
    pub apps: Vec<AppConfig>,
    /// `[[worker]]`: what runs batches.
    #[serde(default, rename = "worker")]
    pub workers: Vec<WorkerConfig>,
    /// `[[pool]]`: which apps run on which workers, and who schedules them.
    #[serde(default, rename = "pool")]
    pub pools: Vec<PoolConfig>,
    /// `[policies]`: the folder that is watched.
    #[serde(default)]
    pub policies: PoliciesConfig,
    /// `[profile]`: measured latencies.
    #[serde(default)]
    pub profile: ProfileConfig,
    /// The file it was read from, for messages.
    #[serde(skip)]
    pub source: PathBuf,
}

// === impl Config ===

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has a field unknown, missing or of an
    /// impossible value; names file and field.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Unreadable {
            file: file.to_path_buf(),
            source,
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Self::parse(&text, file, folder)
    }

    /// The shipped demo configuration; its paths are seen from the current folder.
    ///
    /// # Errors
    /// As [`Config::read`]; a test checks that there are none.
    pub fn demo() -> Result<Self, ConfigError> {
        Self::parse(DEMO, Path::new(DEMO_NAME), Path::new(""))
    }

    /// Reads and checks text that came from `file`, with relative paths seen from `folder`.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, file: &Path, folder: &Path) -> Result<Self, ConfigError> {
        let toml = toml::Deserializer::parse(text).map_err(|e| ConfigError::syntax(file, &e))?;
        let mut config: Self = serde_path_to_error::deserialize(toml)
            .map_err(|error| ConfigError::field_of(file, &error))?;
        config.source = file.to_path_buf();
        config.resolve(folder);
        config.check()?;
        Ok(config)
    }

    /// Checks ranges, names and references, as reading does; for whoever changes fields.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), ConfigError> {
        check::check(self)
    }

    fn resolve(&mut self, folder: &Path) {
        for app in &mut self.apps {
            app.zoo = folder.join(&app.zoo);
        }
        if let Some(library) = &mut self.server.onnxruntime {
            *library = folder.join(&*library);
        }
        for pool in &mut self.pools {
            let shadow = pool.shadow.as_mut().map(|shadow| &mut shadow.policy);
            for policy in shadow.into_iter().chain([&mut pool.policy]) {
                if names_file(policy) {
                    *policy = folder.join(&policy).to_string_lossy().into_owned();
                }
            }
            if let Some(record) = &mut pool.record {
                record.file = folder.join(&record.file);
            }
        }
        let PoliciesConfig { dir, cache, .. } = &mut self.policies;
        *dir = folder.join(&*dir);
        if let Some(cache) = cache {
            *cache = folder.join(&*cache);
        }
        let ProfileConfig { file, dir, .. } = &mut self.profile;
        *dir = folder.join(&*dir);
        if let Some(file) = file {
            *file = folder.join(&*file);
        }
    }
}
