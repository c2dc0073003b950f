//! `remote` of `[[worker]]`: a worker on another machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use switchyard_remote::{ClientFiles, RemoteTls};

/// A worker on another machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteConfig {
    /// gRPC port of a server of the Open Inference Protocol, such as `switchyard worker` or Triton.
    ///
    /// String, `grpc://HOST:PORT`, with TLS `grpcs://`, or `unix:PATH`; default none: required without `etcd`; example `"grpc://10.0.0.2:8001"`.
    #[serde(default)]
    pub url: String,
    /// Prefix in etcd under which `switchyard worker` registers: each entry is a worker, up to `at_most`.
    ///
    /// String, `FOLDER/FOLDER`; default none; example `"switchyard/workers/far"`.
    #[serde(default)]
    pub etcd: Option<String>,
    /// Makes each address of the name in `url`, or each entry in etcd, a worker: `NAME-0`, `NAME-1` and so
    /// on, this many at most.
    ///
    /// Integer, 1 to 256; default none: one server, required with `etcd`; example `16`.
    #[serde(default)]
    pub at_most: Option<usize>,
    /// Time between two look-ups of the name, with `url` and `at_most`.
    ///
    /// Integer, s, 1 to 3600; default `5`; example `2`.
    #[serde(default)]
    pub resolve_s: Option<u64>,
    /// Certificates of the authorities of its server (PEM), with `grpcs://` or `etcd`. The server's
    /// certificate must have the host of its address.
    ///
    /// Path; default none; example `"/etc/switchyard/workers.pem"`.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Certificate that this side shows to its server (PEM).
    ///
    /// Path; default none; example `"/etc/switchyard/scheduler.pem"`.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    ///
    /// Path; default none; example `"/etc/switchyard/scheduler.key"`.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// Name of the worker's kind, after `remote:`. Workers of a kind share a profile.
    ///
    /// String; default the worker's name; example `"triton"`.
    #[serde(default)]
    pub kind: Option<String>,
    /// Longest time of a batch after those before it. Then the worker counts as lost, and the batch runs
    /// elsewhere.
    ///
    /// Integer, ms, 1 to 3600000; default `10000`; example `2000`.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Batches sent to its server at a time: the next one waits there while an answer is on its way.
    ///
    /// Integer, 1 to 8; default `2`; example `1`.
    #[serde(default = "default_outstanding")]
    pub outstanding: u32,
    /// Models of the server by `app/variant`, as `{ model, version, inputs, outputs }`; the last two
    /// give the server's names of tensors. A worker with models answers at last exits only. Without
    /// the table it is a `switchyard worker`.
    ///
    /// Table; default none; example `{ "heart/cnn" = { model = "heart_cnn", inputs = { beat = "x" } } }`.
    #[serde(default)]
    pub models: BTreeMap<String, RemoteModelConfig>,
    /// The slot of its name that this worker is.
    #[serde(skip)]
    pub slot: Option<usize>,
}

/// Time between two look-ups of a name if the configuration has none, in seconds.
const RESOLVE_S: u64 = 5;

/// A variant on another server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteModelConfig {
    /// The model there.
    pub model: String,
    /// The version there; empty: the server chooses.
    #[serde(default)]
    pub version: String,
    /// The server's names of the app's inputs, if they differ.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// The server's names of the app's outputs, if they differ.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
}

// === impl RemoteConfig ===

impl RemoteConfig {
    /// The path of a Unix socket starts at `folder` from now on.
    pub(crate) fn resolve(&mut self, folder: &Path) {
        if let Some(path) = self
            .url
            .strip_prefix("unix:")
            .filter(|path| !path.is_empty())
        {
            self.url = format!("unix:{}", folder.join(path).display());
        }
    }

    /// Its files.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let files = [&mut self.ca, &mut self.certificate, &mut self.key];
        files.into_iter().flatten()
    }

    /// TLS of the link; none without `ca`.
    pub fn tls(&self) -> Option<RemoteTls> {
        let client = self.certificate.clone().zip(self.key.clone());
        Some(RemoteTls {
            ca: self.ca.clone()?,
            client: client.map(|(certificate, key)| ClientFiles { certificate, key }),
        })
    }

    /// Time between two look-ups of its name.
    pub fn resolve_every(&self) -> Duration {
        Duration::from_secs(self.resolve_s.unwrap_or(RESOLVE_S))
    }

    /// Longest time of a batch after those before it.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

fn default_timeout_ms() -> u64 {
    10_000
}

fn default_outstanding() -> u32 {
    2
}
