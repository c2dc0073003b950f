//! The configuration: one TOML file, read once and checked whole. A refusal names the field.
//!
//! `docs/configuration.md` is generated from the documentation of these fields: the last line of
//! each is `TYPE, UNIT, RANGE; default DEFAULT; example EXAMPLE`. Relative paths in a file start at
//! the folder of that file.

mod app;
mod check;
mod error;
mod policies;
mod pool;
mod prepare;
mod profile;
mod read;
mod server;
mod worker;

use std::path::PathBuf;

use serde::Deserialize;

pub use app::{AppConfig, EvidenceName, PriorName};
pub use error::ConfigError;
pub(crate) use error::closest;
pub use policies::PoliciesConfig;
pub use pool::{FaultLimitConfig, LatencySource, PoolConfig, RecordConfig, ShadowConfig};
pub use prepare::{PLACEHOLDERS, PrepareConfig};
pub use profile::{PercentileName, ProfileConfig};
pub use server::ServerConfig;
pub use worker::WorkerConfig;

/// The whole configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `[server]`: listeners and limits.
    #[serde(default)]
    pub server: ServerConfig,
    /// `[[app]]`: models in the protocol's sense.
    #[serde(default, rename = "app")]
    pub apps: Vec<AppConfig>,
    /// `[[worker]]`: each runs one batch at a time.
    #[serde(default, rename = "worker")]
    pub workers: Vec<WorkerConfig>,
    /// `[[pool]]`: apps and workers that share a policy.
    #[serde(default, rename = "pool")]
    pub pools: Vec<PoolConfig>,
    /// `[policies]`: the folder that is watched.
    #[serde(default)]
    pub policies: PoliciesConfig,
    /// `[profile]`: measured latencies.
    #[serde(default)]
    pub profile: ProfileConfig,
    /// Its file, for messages.
    #[serde(skip)]
    pub source: PathBuf,
}
