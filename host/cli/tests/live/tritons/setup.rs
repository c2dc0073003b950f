//! The scheduler over the servers: its zoo, its profile, the tables of RAMSIS.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::super::binary::{Process, switchyard};
use super::super::fixture::{APP, policy};
use super::servers::{BATCH_MAX, FAST, SLOW};

/// Clients want their answers within this time.
pub(super) const SLO: Duration = Duration::from_millis(600);

/// The scheduler's deadline: an answer has this much time to reach its client.
const SCHEDULED_MS: u64 = 580;

/// Loads that RAMSIS has tables for, in requests per second: up to the capacity of three servers. Beyond it
/// every table is late, and the highest one serves.
const TABLES: &str = "25,50,75,100,125,150,175,200,225,250";

/// Policies of the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduling {
    Ramsis,
    SneakPeek,
}

/// Files that all schedulers of a run share.
pub(super) struct Shared {
    folder: TempDir,
}

/// The servers of a pool.
#[derive(Clone, Copy)]
pub(super) struct Servers<'a> {
    pub(super) tritons: &'a [SocketAddr],
    /// Each with its name.
    pub(super) workers: &'a [(&'static str, SocketAddr)],
}

// === impl Shared ===

impl Shared {
    /// The shipped models, with batches as large as the servers take.
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/zoo/heart");
        copy(&shipped, &folder.path().join("zoo").join(APP));
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of a scheduler and of its `switchyard worker`s.
    fn config(&self, servers: Servers<'_>, policy: Scheduling, dir: &Path) -> String {
        let model = |variant: &str, model: &str| {
            format!("\"{APP}/{variant}\" = {{ model = \"{model}\", inputs = {{ beat = \"x\" }} }}")
        };
        let models = [FAST, SLOW].map(|of| model(of.variant, of.name)).join(", ");
        let mut workers = String::new();
        let mut names = Vec::new();
        let mut worker = |name: String, remote: String| {
            workers += &format!("[[worker]]\nname = \"{name}\"\nremote = {{ {remote} }}\n");
            names.push(name);
        };
        for (nth, at) in servers.tritons.iter().enumerate() {
            let remote =
                format!("url = \"grpc://{at}\", kind = \"triton\", models = {{ {models} }}");
            worker(format!("triton-{nth}"), remote);
        }
        for (name, at) in servers.workers {
            let remote = format!("url = \"grpc://{at}\", kind = \"far\"");
            worker((*name).to_owned(), remote);
        }
        format!(
            r#"
[server]
http = "127.0.0.1:0"
grpc = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[app]]
name = "{APP}"
zoo = "{zoo}"
slo_ms = {SCHEDULED_MS}
variants = ["{fast}", "{slow}"]
{workers}
[[pool]]
name = "fleet"
apps = ["{APP}"]
workers = {names:?}
policy = "{policy}"
settings = {settings}
window_budget_ms = 500
[policies]
dir = "{dir}"
cache = "{cache}"
[profile]
{profile}
"#,
            zoo = self.path("zoo").display(),
            fast = FAST.variant,
            slow = SLOW.variant,
            policy = policy.name(),
            settings = policy.settings(servers),
            dir = dir.display(),
            cache = self.path("cache").display(),
            profile = match self.profile().exists() {
                true => format!("file = \"{}\"", self.profile().display()),
                false => String::new(),
            },
        )
    }

    /// A scheduler that serves under the policy, with RAMSIS's tables in its folder.
    pub(super) fn scheduler(&self, servers: Servers<'_>, of: Scheduling) -> Process {
        let folder = TempDir::new().unwrap();
        let name = of.name();
        fs::write(folder.path().join(format!("{name}.wasm")), policy(name)).unwrap();
        if of == Scheduling::Ramsis {
            copy(&self.path("tables"), &folder.path().join(name));
        }
        let file = folder.path().join("switchyard.toml");
        fs::write(&file, self.config(servers, of, folder.path())).unwrap();
        let mut process = Process::start(&file, folder);
        process.listening();
        process.wait_for_line("policy switched");
        process
    }

    /// A `switchyard worker` at its address. It reads no policy and no profile.
    pub(super) fn worker(&self, servers: Servers<'_>, name: &str) -> Process {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("switchyard.toml");
        fs::write(
            &file,
            self.config(servers, Scheduling::SneakPeek, folder.path()),
        )
        .unwrap();
        let at = servers.workers.iter().find(|(other, _)| *other == name);
        let (_, at) = at.unwrap();
        let mut command = switchyard();
        command.args(["--log", "json", "worker", name, "--http", "127.0.0.1:0"]);
        command.args(["--grpc", &at.to_string(), "--config"]);
        command.arg(file);
        let mut process = Process::spawn(command, folder);
        process.listening();
        process
    }

    /// Measures the servers through the wire, and makes RAMSIS's tables for them.
    pub(super) fn measure(&self, servers: Servers<'_>) {
        let file = self.path("measure.toml");
        fs::write(
            &file,
            self.config(servers, Scheduling::SneakPeek, self.folder.path()),
        )
        .unwrap();
        let mut command = switchyard();
        command.args(["profile", "--config"]).arg(&file);
        command.args(["--budget", "30s", "--accuracy", "0"]);
        command.args(["--batches", "1,2,4,8"]);
        run(command.arg("--out").arg(self.profile()));
        let all = servers.tritons.len() + servers.workers.len();
        for kind in servers.kinds() {
            self.tables(kind, all);
        }
    }

    fn profile(&self) -> PathBuf {
        self.path("profile.json")
    }

    fn tables(&self, kind: &str, workers: usize) {
        let out = self.path("tables").join(kind);
        let mut command = switchyard();
        command.args(["prepare", "ramsis", "--profile"]);
        command.arg(self.profile());
        command.args(["--app", APP, "--kind", &format!("remote:{kind}")]);
        command.args(["--slo-ms", &SCHEDULED_MS.to_string()]);
        command.args(["--workers", &workers.to_string(), "--loads", TABLES]);
        command.args(["--queue-max", "64", "--out"]).arg(&out);
        run(&mut command);
    }
}

// === impl Scheduling ===

impl Scheduling {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ramsis => "ramsis",
            Self::SneakPeek => "sneakpeek",
        }
    }

    fn settings(self, servers: Servers<'_>) -> String {
        match self {
            Self::Ramsis => format!("{{ tables = {:?} }}", servers.kinds()),
            // Without answers from evidence: all are the servers'. Its page advises foresight from 80 % load.
            Self::SneakPeek => "{ short_circuit = false, foresight = true }".to_owned(),
        }
    }
}

// === impl Servers ===

impl Servers<'_> {
    fn kinds(&self) -> &'static [&'static str] {
        match self.workers {
            [] => &["triton"],
            _ => &["triton", "far"],
        }
    }
}

/// Copies a folder; cards get the servers' largest batch.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else if entry.file_name() == "model.toml" {
            let card = fs::read_to_string(entry.path()).unwrap();
            let max = format!("max_batch = {BATCH_MAX}");
            fs::write(to, card.replace("max_batch = 32", &max)).unwrap();
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}
