//! The configuration that commands use without `--config`.

use std::path::Path;

use switchyard_server::config::{Config, ConfigError};

use super::failure::Failure;

/// The configuration at the root of the repository.
pub(crate) const SHIPPED: &str = include_str!("../../../../switchyard.toml");

/// Name of [`SHIPPED`] in messages.
const SHIPPED_NAME: &str = "the shipped demo configuration";

/// Reads a configuration; without a file the shipped one, whose paths are relative to the current
/// folder.
pub(crate) fn read_config(file: Option<&Path>) -> Result<Config, Failure> {
    config_of(file).map_err(Failure::input)
}

/// As [`read_config`], with the error of the configuration.
pub(crate) fn config_of(file: Option<&Path>) -> Result<Config, ConfigError> {
    match file {
        Some(file) => Config::read(file),
        None => Config::parse(SHIPPED, Path::new(SHIPPED_NAME), Path::new("")),
    }
}
