//! Checks that serde does not make: ranges, doubled names, references.

use std::ops::RangeInclusive;

use super::error::closest;
use super::pool::names_file;
use super::{Config, ConfigError, EvidenceName, PLACEHOLDERS, PoolConfig, PriorName, WorkerConfig};

/// More than any machine draws.
const POWER_MAX_W: f64 = 100_000.0;

struct Check<'a> {
    config: &'a Config,
}

/// Checks everything that needs no file.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let check = Check { config };
    check.server()?;
    check.apps()?;
    check.workers()?;
    check.pools()?;
    check.range("policies.history", config.policies.history, 1..=1_024)?;
    check.range(
        "policies.compile_timeout_s",
        config.policies.compile_timeout_s,
        1..=3_600,
    )?;
    check.range("profile.measure_s", config.profile.measure_s, 1..=3_600)?;
    check.range(
        "profile.drift_ratio",
        config.profile.drift_ratio,
        1.05..=100.0,
    )
}

// === impl Check ===

impl Check<'_> {
    fn refuse<T>(
        &self,
        field: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<T, ConfigError> {
        Err(ConfigError::field(&self.config.source, field, reason))
    }

    fn range<T: PartialOrd + std::fmt::Display>(
        &self,
        field: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), ConfigError> {
        if range.contains(&value) {
            return Ok(());
        }
        let reason = format!("{value}, must be {} to {}", range.start(), range.end());
        self.refuse(field, reason)
    }

    fn server(&self) -> Result<(), ConfigError> {
        let server = &self.config.server;
        if !server.admin.ip().is_loopback() {
            let reason = format!("{}, must be a loopback address", server.admin);
            return self.refuse("server.admin", reason);
        }
        self.range("server.body_max_mb", server.body_max_mb, 1..=4_096)?;
        self.range("server.header_max_kb", server.header_max_kb, 8..=1_024)?;
        self.range(
            "server.header_timeout_ms",
            server.header_timeout_ms,
            1..=3_600_000,
        )?;
        self.range(
            "server.body_timeout_ms",
            server.body_timeout_ms,
            1..=3_600_000,
        )?;
        self.range(
            "server.connections_max",
            server.connections_max,
            1..=1_000_000,
        )?;
        self.range("server.rows_max", server.rows_max, 1..=65_536)?;
        self.range("server.threads", server.threads, 0..=1_024)?;
        self.range("server.inbox_max", server.inbox_max, 1..=1_000_000)?;
        self.range(
            "server.drain_timeout_ms",
            server.drain_timeout_ms,
            0..=3_600_000,
        )
    }

    fn apps(&self) -> Result<(), ConfigError> {
        let apps = &self.config.apps;
        self.distinct("app", apps.iter().map(|app| app.name.as_str()))?;
        for (i, app) in apps.iter().enumerate() {
            if app
                .slo_ms
                .is_some_and(|slo| !(slo.is_finite() && slo >= 0.001))
            {
                return self.refuse(format!("app[{i}].slo_ms"), "must be at least 0.001");
            }
            let strong = app.prior == PriorName::Strong;
            if strong != app.prior_requests.is_some_and(|r| r.is_finite() && r > 0.0) {
                let reason = "a number above 0 with the strong prior, absent with the others";
                return self.refuse(format!("app[{i}].prior_requests"), reason);
            }
            if app.neighbours == Some(0) {
                return self.refuse(format!("app[{i}].neighbours"), "must be at least 1");
            }
            if app.neighbours.is_some() && app.evidence == EvidenceName::Vote {
                let reason = "a vote has no neighbours; leave it out";
                return self.refuse(format!("app[{i}].neighbours"), reason);
            }
            if app.variants.as_ref().is_some_and(Vec::is_empty) {
                return self.refuse(
                    format!("app[{i}].variants"),
                    "is empty; leave it out for all variants",
                );
            }
        }
        Ok(())
    }

    fn workers(&self) -> Result<(), ConfigError> {
        let workers = &self.config.workers;
        self.distinct("worker", workers.iter().map(|worker| worker.name.as_str()))?;
        for (i, worker) in workers.iter().enumerate() {
            let WorkerConfig {
                device,
                threads,
                cores,
                memory_mb,
                pin,
                power_w,
                queue_max,
                parked_max,
                ..
            } = worker;
            if let Err(error) = device.check_built() {
                return self.refuse(format!("worker[{i}].device"), error.to_string());
            }
            self.range(&format!("worker[{i}].threads"), *threads, 1..=1_024)?;
            self.cores(i, cores, *threads)?;
            self.range(&format!("worker[{i}].memory_mb"), *memory_mb, 1..=1 << 24)?;
            self.pins(i, pin)?;
            self.power(i, *power_w)?;
            self.range(&format!("worker[{i}].queue_max"), *queue_max, 1..=65_536)?;
            self.range(&format!("worker[{i}].parked_max"), *parked_max, 0..=65_536)?;
        }
        Ok(())
    }

    /// The server compares the cores with those of the machine at its start: a configuration may be
    /// read on another machine.
    fn cores(&self, i: usize, cores: &[usize], threads: usize) -> Result<(), ConfigError> {
        if !cores.is_empty() && cores.len() != threads {
            let count = cores.len();
            let reason = format!("has {count}, must be as many as threads, {threads}, or none");
            return self.refuse(format!("worker[{i}].cores"), reason);
        }
        for (j, core) in cores.iter().enumerate() {
            if cores[..j].contains(core) {
                let reason = format!("{core} is there already");
                return self.refuse(format!("worker[{i}].cores[{j}]"), reason);
            }
        }
        Ok(())
    }

    /// Workers of a kind share a profile, and so its energies.
    fn power(&self, i: usize, power_w: Option<f64>) -> Result<(), ConfigError> {
        let at = format!("worker[{i}].power_w");
        if power_w.is_some_and(|watts| !(watts > 0.0 && watts <= POWER_MAX_W)) {
            return self.refuse(&at, format!("must be above 0, at most {POWER_MAX_W}"));
        }
        let workers = &self.config.workers;
        let is_other =
            |other: &&WorkerConfig| other.kind() == workers[i].kind() && other.power_w != power_w;
        match workers[..i].iter().find(is_other) {
            None => Ok(()),
            Some(other) => self.refuse(
                &at,
                format!(
                    "must be that of worker `{}`, which has the same device and threads",
                    other.name
                ),
            ),
        }
    }

    /// Variants are compared with those of the zoo when the zoo is read.
    fn pins(&self, i: usize, pins: &[String]) -> Result<(), ConfigError> {
        for (j, pin) in pins.iter().enumerate() {
            let at = format!("worker[{i}].pin[{j}]");
            let Some((app, _)) = pin.split_once('/') else {
                return self.refuse(at, format!("`{pin}`, must be `app/variant`"));
            };
            let mut known = self.config.apps.iter().map(|app| app.name.as_str());
            if !known.clone().any(|name| name == app) {
                let hint = match closest(app, known.by_ref()) {
                    Some(close) => format!("; did you mean `{close}`?"),
                    None => String::new(),
                };
                return self.refuse(at, format!("no [[app]] is called `{app}`{hint}"));
            }
            if pins[..j].contains(pin) {
                return self.refuse(at, format!("`{pin}` is there already"));
            }
        }
        Ok(())
    }

    fn pools(&self) -> Result<(), ConfigError> {
        let pools = &self.config.pools;
        self.distinct("pool", pools.iter().map(|pool| pool.name.as_str()))?;
        for (i, pool) in pools.iter().enumerate() {
            self.pool(i, pool)?;
        }
        let apps = self.config.apps.iter().map(|app| app.name.as_str());
        self.members("app", "apps", apps, |pool| &pool.apps)?;
        let workers = self
            .config
            .workers
            .iter()
            .map(|worker| worker.name.as_str());
        self.members("worker", "workers", workers, |pool| &pool.workers)
    }

    fn pool(&self, i: usize, pool: &PoolConfig) -> Result<(), ConfigError> {
        for (field, members) in [("apps", &pool.apps), ("workers", &pool.workers)] {
            if members.is_empty() {
                return self.refuse(format!("pool[{i}].{field}"), "is empty");
            }
        }
        let at = |field: &str| format!("pool[{i}].{field}");
        self.policy(&at("policy"), &pool.policy)?;
        if let Some(shadow) = &pool.shadow {
            self.policy(&at("shadow.policy"), &shadow.policy)?;
        }
        self.range(&at("window_budget_ms"), pool.window_budget_ms, 1..=60_000)?;
        self.range(&at("policy_memory_mb"), pool.policy_memory_mb, 1..=4_096)?;
        self.range(&at("pending_max"), pool.pending_max, 1..=1_000_000)?;
        self.range(
            &at("fault_limit.faults"),
            pool.fault_limit.faults,
            1..=1_000_000,
        )?;
        self.range(
            &at("fault_limit.windows"),
            pool.fault_limit.windows,
            1..=1_000_000,
        )?;
        self.range(&at("patience_ms"), pool.patience_ms, 1..=3_600_000)?;
        self.range(&at("windows_kept"), pool.windows_kept, 1..=4_096)?;
        self.prepare(i, pool)?;
        self.record(i, pool)
    }

    fn prepare(&self, i: usize, pool: &PoolConfig) -> Result<(), ConfigError> {
        let Some(prepare) = &pool.prepare else {
            return Ok(());
        };
        let at = |field: &str| format!("pool[{i}].prepare.{field}");
        if prepare.command.first().is_none_or(String::is_empty) {
            return self.refuse(at("command"), "is empty; its first word is the program");
        }
        if let Some(name) = prepare.unknown_placeholder() {
            let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
            let reason = format!("`{{{name}}}` is no placeholder; there are: {known}");
            return self.refuse(at("command"), reason);
        }
        self.range(&at("above_rps"), prepare.above_rps, 0.0..=1e9)?;
        self.range(&at("timeout_s"), prepare.timeout_s, 1..=86_400)
    }

    fn policy(&self, field: &str, policy: &str) -> Result<(), ConfigError> {
        if names_file(policy) || is_plain_name(policy) {
            return Ok(());
        }
        let reason = format!(
            "`{policy}`, must be the name of a policy in policies.dir, or a path to a .wasm file"
        );
        self.refuse(field, reason)
    }

    fn record(&self, i: usize, pool: &PoolConfig) -> Result<(), ConfigError> {
        let Some(record) = &pool.record else {
            return Ok(());
        };
        let before = self.config.pools.iter().take(i);
        let mut files = before.filter_map(|pool| pool.record.as_ref());
        if files.any(|other| other.file == record.file) {
            let reason = format!("`{}`, another pool records there", record.file.display());
            return self.refuse(format!("pool[{i}].record.file"), reason);
        }
        self.range(
            &format!("pool[{i}].record.max_mb"),
            record.max_mb,
            1..=1 << 20,
        )
    }

    fn distinct<'a>(
        &self,
        section: &str,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), ConfigError> {
        if names.clone().next().is_none() {
            return self.refuse(section, format!("there is no [[{section}]]"));
        }
        for (i, name) in names.clone().enumerate() {
            let field = format!("{section}[{i}].name");
            if name.is_empty() {
                return self.refuse(field, "is empty");
            }
            if names.clone().take(i).any(|before| before == name) {
                return self.refuse(field, format!("`{name}` is taken by another [[{section}]]"));
            }
        }
        Ok(())
    }

    /// Every name in a pool exists, and every thing is in exactly one pool.
    fn members<'a>(
        &self,
        thing: &str,
        field: &str,
        known: impl Iterator<Item = &'a str> + Clone,
        of: impl Fn(&PoolConfig) -> &Vec<String>,
    ) -> Result<(), ConfigError> {
        let mut used: Vec<&str> = Vec::new();
        for (i, pool) in self.config.pools.iter().enumerate() {
            for (j, name) in of(pool).iter().enumerate() {
                let at = format!("pool[{i}].{field}[{j}]");
                if !known.clone().any(|one| one == name) {
                    let hint = match closest(name, known.clone()) {
                        Some(close) => format!("; did you mean `{close}`?"),
                        None => String::new(),
                    };
                    return self.refuse(at, format!("no [[{thing}]] is called `{name}`{hint}"));
                }
                if used.contains(&name.as_str()) {
                    return self.refuse(at, format!("{thing} `{name}` is in a pool already"));
                }
                used.push(name);
            }
        }
        match known.clone().position(|name| !used.contains(&name)) {
            Some(i) => self.refuse(format!("{thing}[{i}]"), "is in no [[pool]]"),
            None => Ok(()),
        }
    }
}

/// A name that stays inside the folder it is looked up in.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}
