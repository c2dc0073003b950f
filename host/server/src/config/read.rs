//! Reads a configuration from a file or from text.

use std::path::Path;

use super::pool::names_file;
use super::{Config, ConfigError, PoliciesConfig, ProfileConfig, check};

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has an unknown, missing or invalid field; names
    /// file and field.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Unreadable {
            file: file.to_path_buf(),
            source,
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Self::parse(&text, file, folder)
    }

    /// Reads and checks the text of `file`; relative paths start at `folder`.
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

    /// Checks ranges, names and references, as [`Config::read`] does.
    ///
    /// # Errors
    /// Every field at fault.
    pub fn check(&self) -> Result<(), ConfigError> {
        check::check(self)
    }

    fn resolve(&mut self, folder: &Path) {
        for app in &mut self.apps {
            app.zoo = folder.join(&app.zoo);
        }
        let server = &mut self.server;
        for path in [&mut server.onnxruntime, &mut server.operators] {
            if let Some(path) = path {
                *path = folder.join(&*path);
            }
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
