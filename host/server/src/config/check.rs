//! Checks that serde does not make: ranges, doubled names, references.

mod etcd;
mod remote;

use std::ops::RangeInclusive;

use super::error::closest;
use super::pool::names_file;
use super::{Config, ConfigError, EvidenceName, PLACEHOLDERS, PoolConfig, PriorName, WorkerConfig};

/// More than any machine draws.
const POWER_MAX_W: f64 = 100_000.0;

/// Collects every mistake, so that a file is mended in one go. A mistake that only follows from
/// another one is left out.
struct Check<'a> {
    config: &'a Config,
    mistakes: Vec<ConfigError>,
}

/// Checks everything that needs no file.
pub(super) fn check(config: &Config) -> Vec<ConfigError> {
    let mut check = Check {
        config,
        mistakes: Vec::new(),
    };
    check.server();
    check.traces();
    check.etcd();
    check.apps();
    check.workers();
    check.pools();
    check.range("policies.history", config.policies.history, 1..=1_024);
    check.range(
        "policies.compile_timeout_s",
        config.policies.compile_timeout_s,
        1..=3_600,
    );
    check.stand_in();
    check.range("profile.measure_s", config.profile.measure_s, 1..=3_600);
    check.range(
        "profile.drift_ratio",
        config.profile.drift_ratio,
        1.05..=100.0,
    );
    check.mistakes
}

// === impl Check ===

impl Check<'_> {
    fn refuse(&mut self, field: impl Into<String>, reason: impl Into<String>) {
        let field = field.into();
        self.mistakes.push(ConfigError::Field {
            origin: self.config.written.origin(&field),
            field,
            reason: reason.into(),
        });
    }

    fn range<T: PartialOrd + std::fmt::Display>(
        &mut self,
        field: &str,
        value: T,
        range: RangeInclusive<T>,
    ) {
        if !range.contains(&value) {
            let reason = format!("{value}, must be {} to {}", range.start(), range.end());
            self.refuse(field, reason);
        }
    }

    fn stand_in(&mut self) {
        let config = self.config;
        if !config.profile.stand_in {
            return;
        }
        if config.profile.file.is_none() {
            let reason = "true, needs `file` in [profile] with the latencies that workers take";
            self.refuse("profile.stand_in", reason);
        }
        if let Some(worker) = config.workers.iter().find(|it| it.remote.is_some()) {
            let reason = format!(
                "true, and worker {} is remote: leave out its `remote`, or `stand_in`",
                worker.name
            );
            self.refuse("profile.stand_in", reason);
        }
    }

    fn server(&mut self) {
        let server = &self.config.server;
        let addresses: Vec<_> = server.addresses().collect();
        for (at, (field, address)) in addresses.iter().enumerate() {
            let mut others = addresses[..at].iter();
            if let Some((other, _)) = others.find(|(_, other)| address.overlaps(other)) {
                let kind = address.tcp().map_or("path", |_| "port");
                let reason = format!("{address}, must be another {kind} than server.{other}");
                self.refuse(format!("server.{field}"), reason);
            }
        }
        if server.admin.tcp().is_none() && server.admin_tls.is_some() {
            let reason = "must be absent: `admin` is a Unix socket";
            self.refuse("server.admin_tls", reason);
        }
        let is_open = !server.admin.is_local();
        if is_open && (server.admin_tls.is_none() || server.operators.is_none()) {
            let reason = format!(
                "{}, must be a loopback address, unless `admin_tls` and `operators` are set",
                server.admin
            );
            self.refuse("server.admin", reason);
        }
        for (i, host) in server.admin_hosts.iter().enumerate() {
            if !is_host_name(host) {
                let reason = format!("`{host}`, must be a name without scheme and port");
                self.refuse(format!("server.admin_hosts[{i}]"), reason);
            }
        }
        self.range("server.body_max_mb", server.body_max_mb, 1..=4_096);
        self.range("server.header_max_kb", server.header_max_kb, 8..=1_024);
        self.range(
            "server.header_timeout_ms",
            server.header_timeout_ms,
            1..=3_600_000,
        );
        self.range(
            "server.body_timeout_ms",
            server.body_timeout_ms,
            1..=3_600_000,
        );
        self.range(
            "server.connections_max",
            server.connections_max,
            1..=1_000_000,
        );
        for (field, ms) in [
            ("server.head_timeout_ms", server.head_timeout_ms),
            ("server.write_timeout_ms", server.write_timeout_ms),
            ("server.load_timeout_ms", server.load_timeout_ms),
            ("server.timeout_max_ms", server.timeout_max_ms),
        ] {
            self.range(field, ms, 1..=3_600_000);
        }
        self.range(
            "server.drain_delay_ms",
            server.drain_delay_ms,
            0..=3_600_000,
        );
        self.range("server.rate_min", server.rate_min, 0..=1 << 20);
        // A compressed body has a share as sent and a share as decompressed.
        self.range(
            "server.request_memory_mb",
            server.request_memory_mb,
            2 * server.body_max_mb..=1 << 20,
        );
        self.range(
            "server.connections_per_client_max",
            server.connections_per_client_max,
            0..=1_000_000,
        );
        self.range("server.rows_max", server.rows_max, 1..=65_536);
        self.range("server.threads", server.threads, 0..=1_024);
        self.range("server.inbox_max", server.inbox_max, 1..=1_000_000);
        self.range(
            "server.drain_timeout_ms",
            server.drain_timeout_ms,
            0..=3_600_000,
        );
    }

    fn traces(&mut self) {
        let Some(traces) = &self.config.server.traces else {
            return;
        };
        if let Some(reason) = traces.mistake() {
            self.refuse("server.traces.endpoint", reason);
        }
        self.range("server.traces.share", traces.share, 0.0..=1.0);
    }

    fn apps(&mut self) {
        for (i, app) in self.config.apps.iter().enumerate() {
            let at = |field: &str| format!("app[{i}].{field}");
            if let Some(slo) = app.slo_ms.filter(|slo| !(slo.is_finite() && *slo >= 0.001)) {
                self.refuse(at("slo_ms"), format!("{slo}, must be at least 0.001"));
            }
            let strong = app.prior == PriorName::Strong;
            if strong != app.prior_requests.is_some_and(|r| r.is_finite() && r > 0.0) {
                let reason =
                    "must be a number above 0 with the strong prior, absent with the others";
                self.refuse(at("prior_requests"), reason);
            }
            if app.neighbours == Some(0) {
                self.refuse(at("neighbours"), "0, must be at least 1");
            }
            if app.neighbours.is_some() && app.evidence == EvidenceName::Vote {
                self.refuse(at("neighbours"), "a vote has no neighbours; leave it out");
            }
            if app.variants.as_ref().is_some_and(Vec::is_empty) {
                self.refuse(at("variants"), "is empty; leave it out for all variants");
            }
        }
    }

    fn workers(&mut self) {
        for (i, worker) in self.config.workers.iter().enumerate() {
            let at = |field: &str| format!("worker[{i}].{field}");
            if let Err(error) = worker.device.check_built() {
                self.refuse(at("device"), error.to_string());
            }
            self.range(&at("threads"), worker.threads, 1..=1_024);
            self.cores(i, &worker.cores, worker.threads);
            self.range(&at("memory_mb"), worker.memory_mb, 1..=1 << 24);
            self.pins(i, &worker.pin);
            self.power(i, worker.power_w);
            self.range(&at("queue_max"), worker.queue_max, 1..=65_536);
            self.range(&at("parked_max"), worker.parked_max, 0..=65_536);
            if let Some(remote) = &worker.remote {
                self.remote(i, remote);
                self.slots(i, remote);
            }
        }
    }

    /// The server compares the cores with those of the machine at its start: a configuration may be
    /// read on another machine.
    fn cores(&mut self, i: usize, cores: &[usize], threads: usize) {
        if !cores.is_empty() && cores.len() != threads {
            let count = cores.len();
            let reason = format!("has {count}, must be as many as threads, {threads}, or none");
            self.refuse(format!("worker[{i}].cores"), reason);
        }
        for (j, core) in cores.iter().enumerate() {
            if cores[..j].contains(core) {
                let reason = format!("{core} is there already");
                self.refuse(format!("worker[{i}].cores[{j}]"), reason);
            }
        }
    }

    /// Workers of a kind share a profile, and so its energies.
    fn power(&mut self, i: usize, power_w: Option<f64>) {
        let at = format!("worker[{i}].power_w");
        if let Some(watts) = power_w.filter(|watts| !is_power(*watts)) {
            let reason = format!("{watts}, must be above 0, at most {POWER_MAX_W}");
            return self.refuse(&at, reason);
        }
        let workers = &self.config.workers;
        // A power out of range has its own mistake.
        let is_other = |other: &&WorkerConfig| {
            other.kind() == workers[i].kind()
                && other.power_w != power_w
                && other.power_w.is_none_or(is_power)
        };
        if let Some(other) = workers[..i].iter().find(is_other) {
            let name = &other.name;
            let reason =
                format!("must be that of worker `{name}`, which has the same device and threads");
            self.refuse(&at, reason);
        }
    }

    /// Variants are compared with those of the zoo when the zoo is read.
    fn pins(&mut self, i: usize, pins: &[String]) {
        let apps = &self.config.apps;
        for (j, pin) in pins.iter().enumerate() {
            let at = format!("worker[{i}].pin[{j}]");
            let known = || apps.iter().map(|app| app.name.as_str());
            match pin.split_once('/') {
                None => self.refuse(at, format!("`{pin}`, must be `app/variant`")),
                Some((app, _)) if !known().any(|name| name == app) => {
                    let hint = hint(app, known());
                    self.refuse(at, format!("no [[app]] is called `{app}`{hint}"));
                }
                Some(_) if pins[..j].contains(pin) => {
                    self.refuse(at, format!("`{pin}` is there already"));
                }
                Some(_) => {}
            }
        }
    }

    fn pools(&mut self) {
        let config = self.config;
        let apps = config.apps.iter().map(|app| app.name.as_str());
        let workers = config.workers.iter().map(|worker| worker.name.as_str());
        let pools = config.pools.iter().map(|pool| pool.name.as_str());
        let apps_are_known = self.distinct("app", apps.clone());
        let workers_are_known = self.distinct("worker", workers.clone());
        self.distinct("pool", pools);
        for (i, pool) in config.pools.iter().enumerate() {
            self.pool(i, pool);
        }
        // With a wrong name in a section, each reference to the right name would be a mistake too.
        let has_pools = !config.pools.is_empty();
        if has_pools && apps_are_known {
            self.members("app", "apps", apps, |pool| &pool.apps);
        }
        if has_pools && workers_are_known {
            self.members("worker", "workers", workers, |pool| &pool.workers);
        }
    }

    fn pool(&mut self, i: usize, pool: &PoolConfig) {
        let at = |field: &str| format!("pool[{i}].{field}");
        for (field, members) in [("apps", &pool.apps), ("workers", &pool.workers)] {
            if members.is_empty() {
                self.refuse(at(field), "is empty");
            }
        }
        self.policy(&at("policy"), &pool.policy);
        if let Some(shadow) = &pool.shadow {
            self.policy(&at("shadow.policy"), &shadow.policy);
        }
        self.range(&at("window_budget_ms"), pool.window_budget_ms, 1..=60_000);
        self.range(&at("policy_memory_mb"), pool.policy_memory_mb, 1..=4_096);
        self.range(&at("pending_max"), pool.pending_max, 1..=1_000_000);
        self.range(
            &at("fault_limit.faults"),
            pool.fault_limit.faults,
            1..=1_000_000,
        );
        self.range(
            &at("fault_limit.windows"),
            pool.fault_limit.windows,
            1..=1_000_000,
        );
        self.range(&at("patience_ms"), pool.patience_ms, 1..=3_600_000);
        self.range(&at("windows_kept"), pool.windows_kept, 1..=4_096);
        self.prepare(i, pool);
        self.record(i, pool);
    }

    fn prepare(&mut self, i: usize, pool: &PoolConfig) {
        let Some(prepare) = &pool.prepare else {
            return;
        };
        let at = |field: &str| format!("pool[{i}].prepare.{field}");
        if prepare.command.first().is_none_or(String::is_empty) {
            self.refuse(at("command"), "is empty; its first word is the program");
        }
        if let Some(name) = prepare.unknown_placeholder() {
            let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
            let reason = format!("`{{{name}}}` is no placeholder; there are: {known}");
            self.refuse(at("command"), reason);
        }
        self.range(&at("above_rps"), prepare.above_rps, 0.0..=1e9);
        self.range(&at("timeout_s"), prepare.timeout_s, 1..=86_400);
    }

    fn policy(&mut self, field: &str, policy: &str) {
        if names_file(policy) || is_plain_name(policy) {
            return;
        }
        let reason = format!(
            "`{policy}`, must be the name of a policy in policies.dir, or a path to a .wasm file"
        );
        self.refuse(field, reason);
    }

    fn record(&mut self, i: usize, pool: &PoolConfig) {
        let Some(record) = &pool.record else {
            return;
        };
        let before = self.config.pools.iter().take(i);
        let mut files = before.filter_map(|pool| pool.record.as_ref());
        if files.any(|other| other.file == record.file) {
            let reason = format!("`{}`, another pool records there", record.file.display());
            self.refuse(format!("pool[{i}].record.file"), reason);
        }
        self.range(
            &format!("pool[{i}].record.max_mb"),
            record.max_mb,
            1..=1 << 20,
        );
    }

    /// Whether the section has names, and each once.
    fn distinct<'a>(
        &mut self,
        section: &str,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> bool {
        let before = self.mistakes.len();
        if names.clone().next().is_none() {
            self.refuse(section, format!("there is no [[{section}]]"));
        }
        for (i, name) in names.clone().enumerate() {
            let field = format!("{section}[{i}].name");
            if name.is_empty() {
                self.refuse(field, "is empty");
            } else if names.clone().take(i).any(|before| before == name) {
                self.refuse(field, format!("`{name}` is taken by another [[{section}]]"));
            }
        }
        self.mistakes.len() == before
    }

    /// Every name in a pool exists, and every thing is in exactly one pool.
    fn members<'a>(
        &mut self,
        thing: &str,
        field: &str,
        known: impl Iterator<Item = &'a str> + Clone,
        of: impl Fn(&PoolConfig) -> &Vec<String>,
    ) {
        let pools = &self.config.pools;
        let mut used: Vec<&str> = Vec::new();
        // A thing that is in no pool may be the one that a wrong name or an empty list means.
        let mut is_complete = pools.iter().all(|pool| !of(pool).is_empty());
        for (i, pool) in pools.iter().enumerate() {
            for (j, name) in of(pool).iter().enumerate() {
                let at = format!("pool[{i}].{field}[{j}]");
                if !known.clone().any(|one| one == name) {
                    let hint = hint(name, known.clone());
                    self.refuse(at, format!("no [[{thing}]] is called `{name}`{hint}"));
                    is_complete = false;
                } else if used.contains(&name.as_str()) {
                    self.refuse(at, format!("{thing} `{name}` is in a pool already"));
                }
                used.push(name);
            }
        }
        let unused = known.enumerate().filter(|(_, name)| !used.contains(name));
        for (i, _) in unused.filter(|_| is_complete) {
            self.refuse(format!("{thing}[{i}]"), "is in no [[pool]]");
        }
    }
}

fn is_power(watts: f64) -> bool {
    watts > 0.0 && watts <= POWER_MAX_W
}

/// The end of a message about an unknown name.
fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    closest(name, known).map_or_else(String::new, |close| format!("; did you mean `{close}`?"))
}

fn is_host_name(host: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    !host.is_empty() && host.chars().all(is_part)
}

/// A name that stays inside the folder it is looked up in.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}
