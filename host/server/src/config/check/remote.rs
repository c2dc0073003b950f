//! Checks of workers on other machines.

use switchyard_remote::RemoteAddress;

use super::Check;
use crate::config::RemoteConfig;

/// Most slots of a name. Each costs a thread per outstanding batch, and a row in every window.
const SLOTS_MAX: usize = 256;

impl Check<'_> {
    /// Models are compared with those of the zoo when it is read, and with the server's at the start.
    pub(super) fn remote(&mut self, i: usize, remote: &RemoteConfig) {
        let at = |field: &str| format!("worker[{i}].remote.{field}");
        match remote.url.parse::<RemoteAddress>() {
            _ if remote.etcd.is_some() => self.prefix(i, remote),
            Err(_) if remote.url.is_empty() => {
                let reason = "is missing: give the address of its server, or a prefix in `etcd`";
                self.refuse(at("url"), reason);
            }
            Err(error) => self.refuse(at("url"), error.to_string()),
            Ok(address) if address.is_tls && remote.ca.is_none() => {
                let reason =
                    "is required with grpcs://: the authorities of the server's certificate";
                self.refuse(at("ca"), reason);
            }
            Ok(address) if !address.is_tls && remote.ca.is_some() => {
                let reason = format!("`{}`, must begin with grpcs:// where ca is set", remote.url);
                self.refuse(at("url"), reason);
            }
            Ok(_) => {}
        }
        for (field, other, is_alone) in [
            ("certificate", "key", remote.key.is_none()),
            ("key", "certificate", remote.certificate.is_none()),
        ] {
            let has = match field {
                "key" => remote.key.is_some(),
                _ => remote.certificate.is_some(),
            };
            if has && (is_alone || remote.ca.is_none()) {
                let reason = match remote.etcd {
                    None => format!("needs `{other}` and `ca` next to it, and a url of grpcs://"),
                    Some(_) => format!("needs `{other}` and `ca` next to it"),
                };
                self.refuse(at(field), reason);
            }
        }
        if remote.kind.as_ref().is_some_and(String::is_empty) {
            self.refuse(at("kind"), "is empty; leave it out for the worker's name");
        }
        self.range(&at("timeout_ms"), remote.timeout_ms, 1..=3_600_000);
        self.range(&at("outstanding"), remote.outstanding, 1..=8);
    }

    /// The slots of the name in a worker's url.
    pub(super) fn slots(&mut self, i: usize, remote: &RemoteConfig) {
        let at = |field: &str| format!("worker[{i}].remote.{field}");
        if let Some(resolve_s) = remote.resolve_s {
            self.range(&at("resolve_s"), resolve_s, 1..=3_600);
        }
        let Some(at_most) = remote.at_most else {
            if remote.resolve_s.is_some() && remote.etcd.is_none() {
                let reason =
                    "is for a name with several addresses; set `at_most` too, or leave it out";
                self.refuse(at("resolve_s"), reason);
            }
            return;
        };
        self.range(&at("at_most"), at_most, 1..=SLOTS_MAX);
        let address = remote.url.parse::<RemoteAddress>();
        if address.is_ok_and(|address| !address.is_name()) {
            let url = &remote.url;
            let reason = format!(
                "`{url}` is one address; must have a name with at_most, or leave at_most out"
            );
            self.refuse(at("url"), reason);
        }
        let workers = &self.config.workers;
        let slots: Vec<_> = (0..at_most.min(SLOTS_MAX))
            .map(|slot| workers[i].slot_name(slot))
            .collect();
        for (j, other) in workers.iter().enumerate() {
            if slots.contains(&other.name) {
                let (slot, name) = (&other.name, &workers[i].name);
                let reason = format!("`{slot}` is a slot of worker `{name}`; must be another name");
                self.refuse(format!("worker[{j}].name"), reason);
            }
        }
    }
}
