//! One app on one worker: its configuration, profile and tables, in a folder that is removed at the
//! end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use switchyard_core::policy::FALLBACK_NAME;
use tempfile::TempDir;
use toml::{Table, Value};

use super::options::OverloadOptions;
use crate::commands::Failure;

/// The app that gets all requests.
pub(super) const APP: &str = "heart";

/// Its deadline, in milliseconds.
pub(super) const SLO_MS: u64 = 50;

/// Deadlines of requests, relative to the SLO: 20 to 500 ms, in equal shares.
pub(super) const DEADLINES: [f64; 4] = [0.4, 1.0, 3.0, 10.0];

/// The native fallback.
pub(super) const FALLBACK: &str = "edf";

/// The policy whose tables are made first.
const RAMSIS: &str = "ramsis";

/// Loads of its tables: the prepared range, in requests per second.
const RAMSIS_LOADS: &str = "auto:100:4000";

/// The files.
pub(super) struct Files {
    folder: TempDir,
    policies: PathBuf,
    pub(super) profile: PathBuf,
}

// === impl Files ===

impl Files {
    pub(super) fn make(options: &OverloadOptions) -> Result<Self, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::input)?;
        let absolute = |path: &Path| std::path::absolute(path).map_err(Failure::input);
        let made = Self {
            policies: absolute(&options.policies_dir)?,
            profile: match &options.profile {
                Some(file) => absolute(file)?,
                None => folder.path().join("profile.json"),
            },
            folder,
        };
        made.write_workload()?;
        made.write_config("edf", options)?;
        if options.profile.is_none() {
            let budget = format!("{}s", options.budget.as_secs().max(1));
            let mut profile = program()?;
            profile.args(["profile", "--budget", &budget, "--accuracy", "0", "--out"]);
            profile
                .arg(&made.profile)
                .arg("--config")
                .arg(made.config());
            done(profile.stdout(Stdio::null()))?;
        }
        if options.policies.iter().any(|policy| policy == RAMSIS) {
            made.prepare_ramsis()?;
        }
        Ok(made)
    }

    /// Writes the configuration of a server under this policy; none: the native fallback.
    pub(super) fn write_config(
        &self,
        policy: &str,
        options: &OverloadOptions,
    ) -> Result<(), Failure> {
        let zoo = std::path::absolute(&options.zoo).map_err(Failure::input)?;
        let text = |path: &Path| Value::String(path.to_string_lossy().into_owned());
        let table = |fields: Vec<(&str, Value)>| {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value));
            Value::Table(fields.collect::<Table>())
        };
        let server = table(vec![
            ("http", "127.0.0.1:0".into()),
            ("admin", "127.0.0.1:0".into()),
        ]);
        let app = table(vec![
            ("name", APP.into()),
            ("zoo", text(&zoo)),
            ("slo_ms", (SLO_MS as f64).into()),
            ("late", options.late.as_str().into()),
        ]);
        let worker = table(vec![
            ("name", "cpu".into()),
            ("threads", 1.into()),
            ("memory_mb", 256.into()),
        ]);
        let mut pool = vec![
            ("name", "main".into()),
            ("apps", vec![APP].into()),
            ("workers", vec!["cpu"].into()),
            ("policy", self.configured(policy)),
        ];
        if policy == RAMSIS {
            let tables = text(&self.tables());
            pool.push(("settings", table(vec![("tables", vec![tables].into())])));
        }
        let config = table(vec![
            ("server", server),
            ("app", vec![app].into()),
            ("worker", vec![worker].into()),
            ("pool", vec![table(pool)].into()),
            ("policies", table(vec![("dir", text(&self.live()))])),
            ("profile", table(vec![("file", text(&self.profile))])),
        ]);
        let config = toml::to_string(&config).map_err(Failure::check)?;
        fs::write(self.config(), config).map_err(Failure::check)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.folder.path().join("switchyard.toml")
    }

    /// The workload of the simulation, at one request per second.
    pub(super) fn workload(&self) -> PathBuf {
        self.folder.path().join("workload.json")
    }

    /// A policy as `simulate` names it.
    pub(super) fn named(&self, policy: &str) -> String {
        match policy {
            FALLBACK => policy.to_owned(),
            RAMSIS => format!("{policy}={}{{tables = \"{APP}\"}}", self.path(policy)),
            _ => format!("{policy}={}", self.path(policy)),
        }
    }

    /// A policy as a configuration names it.
    fn configured(&self, policy: &str) -> Value {
        match policy {
            FALLBACK => FALLBACK_NAME.into(),
            _ => self.path(policy).into(),
        }
    }

    fn path(&self, policy: &str) -> String {
        self.component(policy).to_string_lossy().into_owned()
    }

    /// The component, in a folder with the tables made here.
    pub(super) fn component(&self, policy: &str) -> PathBuf {
        self.live().join(format!("{policy}.wasm"))
    }

    fn live(&self) -> PathBuf {
        self.folder.path().join("policies")
    }

    fn tables(&self) -> PathBuf {
        PathBuf::from(APP)
    }

    fn write_workload(&self) -> Result<(), Failure> {
        let rate = 1.0 / DEADLINES.len() as f64;
        let streams: Vec<_> = DEADLINES
            .iter()
            .map(|scale| {
                json!({
                    "arrivals": { "poisson": { "rate": rate } },
                    "deadline": { "scaled": scale },
                })
            })
            .collect();
        let text = json!({ "streams": streams }).to_string();
        fs::create_dir_all(self.live()).map_err(Failure::check)?;
        for entry in fs::read_dir(&self.policies).map_err(|error| self.no_policies(&error))? {
            let entry = entry.map_err(Failure::input)?;
            let is_policy = entry.path().extension().is_some_and(|it| it == "wasm");
            if is_policy {
                fs::copy(entry.path(), self.live().join(entry.file_name()))
                    .map_err(Failure::check)?;
            }
        }
        fs::write(self.workload(), text).map_err(Failure::check)
    }

    fn no_policies(&self, error: &std::io::Error) -> Failure {
        Failure::input(format!(
            "--policies {}: {error}; `cargo xtask plugins` builds the policies",
            self.policies.display()
        ))
    }

    fn prepare_ramsis(&self) -> Result<(), Failure> {
        let mut prepare = program()?;
        prepare.args(["prepare", "ramsis", "--app", APP, "--workers", "1"]);
        prepare.args(["--slo-ms", &SLO_MS.to_string(), "--loads", RAMSIS_LOADS]);
        prepare.arg("--profile").arg(&self.profile);
        prepare.arg("--out").arg(self.live().join(RAMSIS).join(APP));
        done(prepare.stdout(Stdio::null()))
    }
}

/// This program.
pub(super) fn program() -> Result<Command, Failure> {
    std::env::current_exe()
        .map(Command::new)
        .map_err(Failure::check)
}

fn done(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(Failure::check)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::check(format!("{command:?}: {status}"))),
    }
}
