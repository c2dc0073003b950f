//! Why a change of the configuration is not taken in.

use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::super::error::StartError;
use crate::assembly::AssemblyError;
use crate::backend::OutputsError;
use crate::config::{Config, ConfigError, Origin};

/// Fields of `[server]` that apply to the next request. `docs/configuration.md` has the list.
const LIVE: [&str; 8] = [
    "body_max_mb",
    "body_timeout_ms",
    "drain_delay_ms",
    "drain_timeout_ms",
    "load_timeout_ms",
    "model_control",
    "rows_max",
    "timeout_max_ms",
];

/// A field that only a start reads.
#[derive(Debug, Error)]
#[error("{origin}: {field}: {before} -> {value} takes a restart: restart the server, or undo it")]
pub(super) struct NeedsRestart {
    origin: Origin,
    field: String,
    before: Value,
    value: Value,
}

/// Why a change is not taken in.
#[derive(Debug, Error)]
pub(super) enum ChangeRefused {
    /// The file cannot be read or is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Fields that only a start reads; one line each.
    #[error("{}", lines(.0))]
    Restart(Vec<NeedsRestart>),
    /// The zoo or the profile cannot be used.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// A pool does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A card names outputs that the server does not make.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// A pool has started and cannot serve.
    #[error("{0}")]
    NotReady(String),
    /// The server stops.
    #[error("the server stops")]
    Cancelled,
}

// === impl ChangeRefused ===

impl ChangeRefused {
    /// Refuses changes that only a restart takes in; the limits that change otherwise.
    pub(super) fn check(now: &Config, read: &Config) -> Result<Vec<String>, Self> {
        let sections = [
            ("server", json(&now.server), json(&read.server)),
            ("policies", json(&now.policies), json(&read.policies)),
            ("profile", json(&now.profile), json(&read.profile)),
            ("etcd", json(&now.etcd), json(&read.etcd)),
        ];
        let (mut live, mut restart) = (Vec::new(), Vec::new());
        for (section, now, wanted) in &sections {
            for (field, value) in wanted {
                let before = now.get(field).unwrap_or(&Value::Null);
                if before == value {
                    continue;
                }
                let path = format!("{section}.{field}");
                if *section == "server" && LIVE.contains(&field.as_str()) {
                    live.push(format!("{path}: {before} -> {value}"));
                } else {
                    restart.push(NeedsRestart {
                        origin: read.written.origin(&path),
                        field: path,
                        before: before.clone(),
                        value: value.clone(),
                    });
                }
            }
        }
        match restart.is_empty() {
            true => Ok(live),
            false => Err(Self::Restart(restart)),
        }
    }
}

fn lines(restart: &[NeedsRestart]) -> String {
    let lines: Vec<String> = restart.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The fields of a section with their values.
fn json(section: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(section) {
        Ok(Value::Object(fields)) => fields,
        // A section is a struct of plain values.
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::path::Path;

    fn config(section: &str) -> Config {
        let text = format!(
            "[[app]]\nname = \"heart\"\n[[worker]]\nname = \"w\"\n\
             [[pool]]\nname = \"main\"\napps = [\"heart\"]\nworkers = [\"w\"]\n\
             policy = \"sneakpeek\"\n{section}"
        );
        Config::parse(&text, Path::new("here.toml"), Path::new("")).unwrap()
    }

    #[test]
    fn limits_of_requests_change_and_other_fields_are_named() {
        let now = config("");
        let live = |section| ChangeRefused::check(&now, &config(section));
        assert!(live("seed = 3").unwrap().is_empty());
        let limits = live("[server]\nrows_max = 7\nbody_max_mb = 1").unwrap();
        assert_eq!(
            limits,
            ["server.body_max_mb: 64 -> 1", "server.rows_max: 1024 -> 7"]
        );
        let text = "[server]\nrows_max = 7\nthreads = 3\n[policies]\nhistory = 2";
        let refused = live(text).unwrap_err().to_string();
        assert_eq!(
            refused,
            "here.toml:12: server.threads: 0 -> 3 takes a restart: restart the server, or undo it\n\
             here.toml:14: policies.history: 8 -> 2 takes a restart: restart the server, or undo it"
        );
    }

    #[test]
    fn every_live_limit_is_a_field() {
        let fields = json(&config("").server);
        assert!(LIVE.iter().all(|field| fields.contains_key(*field)));
    }
}
