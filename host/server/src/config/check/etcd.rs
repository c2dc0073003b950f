//! Checks of `[etcd]`, and of workers that register there.

use switchyard_remote::EtcdAddress;

use super::Check;
use crate::config::{RemoteConfig, WorkerConfig};

impl Check<'_> {
    pub(super) fn etcd(&mut self) {
        let etcd = &self.config.etcd;
        for (i, endpoint) in etcd.endpoints.iter().enumerate() {
            let at = format!("etcd.endpoints[{i}]");
            match endpoint.parse::<EtcdAddress>() {
                Err(error) => self.refuse(at, error.to_string()),
                Ok(address) if address.is_tls() && etcd.ca.is_none() => {
                    let reason =
                        format!("`{endpoint}` needs `ca`: the authorities of its certificate");
                    self.refuse(at, reason);
                }
                Ok(address) if !address.is_tls() && etcd.ca.is_some() => {
                    let reason = format!("`{endpoint}`, must begin with https:// where ca is set");
                    self.refuse(at, reason);
                }
                Ok(_) => {}
            }
        }
        for (field, other, (has, has_other)) in [
            ("certificate", "key", (&etcd.certificate, &etcd.key)),
            ("key", "certificate", (&etcd.key, &etcd.certificate)),
        ] {
            if has.is_some() && (has_other.is_none() || etcd.ca.is_none()) {
                let reason = format!("needs `{other}` and `ca` next to it");
                self.refuse(format!("etcd.{field}"), reason);
            }
        }
        self.range("etcd.ttl_s", etcd.ttl_s, 2..=3_600);
        for (field, key, example) in [
            ("etcd.election", &etcd.election, "switchyard/leader"),
            ("etcd.policies", &etcd.policies, "switchyard/policies"),
        ] {
            let Some(key) = key else {
                continue;
            };
            if !is_prefix(key) {
                let reason =
                    format!("`{key}`, must be words with slashes between them, such as {example}");
                self.refuse(field, reason);
            }
            if etcd.endpoints.is_empty() {
                let reason = "needs `endpoints` next to it, such as [\"http://127.0.0.1:2379\"]";
                self.refuse(field, reason);
            }
        }
        if etcd.advertise.is_some() && etcd.election.is_none() {
            self.refuse(
                "etcd.advertise",
                "needs `election` next to it; or leave it out",
            );
        }
    }

    /// The prefix of workers that register.
    pub(super) fn prefix(&mut self, i: usize, remote: &RemoteConfig) {
        let at = |field: &str| format!("worker[{i}].remote.{field}");
        let prefix = remote.etcd.as_deref().unwrap_or_default();
        if !is_prefix(prefix) {
            let reason = format!(
                "`{prefix}`, must be words with slashes between them, such as switchyard/workers/far"
            );
            self.refuse(at("etcd"), reason);
        }
        let workers = &self.config.workers;
        let of = |worker: &WorkerConfig| worker.remote.as_ref()?.etcd.clone();
        let other = workers[..i].iter().find(|other| of(other) == remote.etcd);
        if let Some(other) = other {
            let name = &other.name;
            let reason = format!("`{prefix}` is that of worker `{name}`; must be another prefix");
            self.refuse(at("etcd"), reason);
        }
        if self.config.etcd.endpoints.is_empty() {
            let reason =
                "needs etcd: set `endpoints` in [etcd], such as [\"http://127.0.0.1:2379\"]";
            self.refuse(at("etcd"), reason);
        }
        for (field, has, reason) in [
            (
                "url",
                !remote.url.is_empty(),
                "must be absent with `etcd`, where workers give theirs",
            ),
            (
                "resolve_s",
                remote.resolve_s.is_some(),
                "must be absent with `etcd`, which is watched",
            ),
            (
                "at_most",
                remote.at_most.is_none(),
                "is missing: give the most workers, 1 to 256",
            ),
        ] {
            if has {
                self.refuse(at(field), reason);
            }
        }
    }
}

fn is_prefix(prefix: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    prefix
        .split('/')
        .all(|part| !part.is_empty() && part.chars().all(is_part))
}
