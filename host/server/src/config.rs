//! The configuration: one TOML file and variables that override it, checked whole. A refusal names
//! every field at fault with its line.
//!
//! `docs/configuration.md` is generated from the documentation of these fields: the last line of
//! each is `TYPE, UNIT, RANGE; default DEFAULT; example EXAMPLE`. Relative paths in a file start at
//! the folder of that file.

mod app;
mod check;
mod document;
mod draft;
mod error;
mod etcd;
mod overrides;
mod policies;
mod pool;
mod prepare;
mod profile;
mod read;
mod remote;
mod server;
mod tls;
mod traces;
mod worker;
mod written;

use std::path::PathBuf;

use serde::Deserialize;
use switchyard_remote::NameResolver;

pub use app::{AppConfig, EvidenceName, PriorName};
pub use draft::Draft;
pub use error::ConfigError;
pub(crate) use error::closest;
pub use etcd::EtcdConfig;
pub use overrides::Overrides;
pub use policies::PoliciesConfig;
pub use pool::{FaultLimitConfig, LatencySource, PoolConfig, RecordConfig, ShadowConfig};
pub use prepare::{PLACEHOLDERS, PrepareConfig};
pub use profile::{PercentileName, ProfileConfig};
pub use remote::{RemoteConfig, RemoteModelConfig};
pub use server::ServerConfig;
pub use tls::TlsConfig;
pub use traces::TracesConfig;
pub use worker::WorkerConfig;
pub use written::{Origin, Written};

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
    /// `[etcd]`: where workers register, and schedulers agree on the active one.
    #[serde(default)]
    pub etcd: EtcdConfig,
    /// Its file, for messages.
    #[serde(skip)]
    pub source: PathBuf,
    /// The folder of the policies that come with the program, for messages.
    #[serde(skip)]
    pub bundled_policies: Option<PathBuf>,
    /// Where its fields were written, for messages.
    #[serde(skip)]
    pub written: Written,
    /// Finds the addresses of workers' names.
    #[serde(skip)]
    pub resolver: NameResolver,
}

// === impl Config ===

impl Config {
    /// The workers of a pool, in the order of the configuration: of a worker with `remote.at_most` each
    /// slot.
    pub fn workers_of(&self, pool: &PoolConfig) -> Vec<WorkerConfig> {
        let workers = self.workers.iter();
        let of_pool = workers.filter(|worker| pool.workers.contains(&worker.name));
        of_pool.flat_map(WorkerConfig::slots).collect()
    }

    /// Whether a pool needs a policy that serves at its start. One that schedulers share may come later.
    pub(crate) fn requires_policies(&self) -> bool {
        self.policies.required && self.etcd.policies.is_none()
    }
}
