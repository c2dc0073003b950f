//! `[etcd]`: where workers register, and schedulers agree on the active one.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchyard_remote::{ClientFiles, EtcdOptions, RemoteTls};

/// How etcd is reached.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EtcdConfig {
    /// Members of the cluster, which are tried in turn.
    ///
    /// List of strings, `http://HOST:PORT` or `https://HOST:PORT`; default none: no etcd; example `["http://127.0.0.1:2379"]`.
    pub endpoints: Vec<String>,
    /// How long etcd keeps the entries of a process that is silent.
    ///
    /// Integer, s, 2 to 3600; default `5`; example `10`.
    pub ttl_s: u64,
    /// Key of the active scheduler. With it another `switchyard serve` stands by, and takes over when the
    /// active one's lease ends.
    ///
    /// String, `FOLDER/NAME`; default none: no scheduler stands by; example `"switchyard/leader"`.
    pub election: Option<String>,
    /// Name of this scheduler at that key, which errors of one that stands by show.
    ///
    /// String; default none: `server.http`; example `"10.0.0.1:8000"`.
    pub advertise: Option<String>,
    /// Folder of the keys, one per pool, by which schedulers have the same policies. A swap on one of them,
    /// with an election on the active one, is one on all.
    ///
    /// String, `FOLDER/NAME`; default none: each has its own; example `"switchyard/policies"`.
    pub policies: Option<String>,
    /// Certificates of the authorities of the members (PEM), with `https://`.
    ///
    /// Path; default none; example `"/etc/switchyard/etcd-ca.pem"`.
    pub ca: Option<PathBuf>,
    /// Certificate that this side shows (PEM).
    ///
    /// Path; default none; example `"/etc/switchyard/etcd.pem"`.
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    ///
    /// Path; default none; example `"/etc/switchyard/etcd.key"`.
    pub key: Option<PathBuf>,
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            ttl_s: 5,
            election: None,
            policies: None,
            advertise: None,
            ca: None,
            certificate: None,
            key: None,
        }
    }
}

// === impl EtcdConfig ===

impl EtcdConfig {
    /// Its files.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let files = [&mut self.ca, &mut self.certificate, &mut self.key];
        files.into_iter().flatten()
    }

    /// How etcd is reached; none without endpoints. The endpoints are checked.
    pub fn options(&self) -> Option<EtcdOptions> {
        let endpoints = self.endpoints.iter();
        let endpoints: Vec<_> = endpoints.filter_map(|at| at.parse().ok()).collect();
        let client = self.certificate.clone().zip(self.key.clone());
        let tls = self.ca.clone().map(|ca| RemoteTls {
            ca,
            client: client.map(|(certificate, key)| ClientFiles { certificate, key }),
        });
        (!endpoints.is_empty()).then(|| EtcdOptions {
            endpoints,
            tls,
            ttl: Duration::from_secs(self.ttl_s),
        })
    }
}
