//! Servers as processes of their own.

mod process;

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use process::Process;
pub(crate) use process::free_ports;

use super::model::{APP, NAMES, Names};

/// For a server to load its model and measure its profile.
const START_MAX: Duration = Duration::from_secs(60);

/// A server that answers at `url`.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) url: String,
    /// Whether it takes tensors as bytes after the JSON.
    pub(crate) takes_binary: bool,
    /// Names of its tensors.
    pub(crate) names: Names,
    /// Address of its gRPC port.
    pub(crate) grpc: Option<String>,
    process: Option<Process>,
}

/// Starts the bounds and ourselves. The policies are those of `cargo xtask plugins`.
pub(crate) fn own(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<Contender> {
    let zoo = folder.join("zoo");
    let mut own = Vec::new();
    for name in ["hyper", "axum"].into_iter().filter(|name| is_wanted(name)) {
        own.push(bare(name, &zoo));
    }
    for (name, options) in [
        ("switchyard, no policy", ServerOptions::fallback()),
        ("switchyard, fcfs", ServerOptions::policy("fcfs")),
        ("switchyard, sneakpeek", ServerOptions::policy("sneakpeek")),
    ] {
        if is_wanted(name) {
            own.push(ours(name, folder, options));
        }
    }
    own
}

fn bare(name: &str, zoo: &Path) -> Contender {
    let port = free_port();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["bare", name, &port.to_string()]).arg(zoo);
    // A product of one row is not worth a second thread, and candle would take all there are.
    command.env("RAYON_NUM_THREADS", "1");
    Contender::start(name, port, &mut command)
}

/// The server's policy and settings.
pub(crate) struct ServerOptions<'a> {
    /// Name and the folder that it is in; none: the component is not there, so that the native
    /// fallback serves.
    component: Option<(&'a str, PathBuf)>,
    pool: &'static str,
    /// Further lines of `[server]`.
    server: String,
    /// Its worker.
    worker: String,
}

/// A worker of the process on one thread.
const WORKER: &str = "name = \"cpu\"\nthreads = 1\nmemory_mb = 64";

/// The server on one worker.
pub(crate) fn ours(name: &str, folder: &Path, options: ServerOptions<'_>) -> Contender {
    let (port, grpc, admin) = (free_port(), free_port(), free_port());
    let policies = folder.join(name.replace([' ', ','], "-"));
    std::fs::create_dir_all(&policies).unwrap();
    if let Some((policy, from)) = &options.component {
        let file = format!("{policy}.wasm");
        std::fs::copy(from.join(&file), policies.join(&file))
            .expect("policies: run `cargo xtask plugins --with-guests` first");
    }
    let config = format!(
        r#"[server]
http = "127.0.0.1:{port}"
grpc = "127.0.0.1:{grpc}"
admin = "127.0.0.1:{admin}"
{server}
[[app]]
name = "{APP}"
zoo = "{zoo}"
[[worker]]
{worker}
[[pool]]
name = "main"
apps = ["{APP}"]
workers = ["cpu"]
policy = "{policy}"
{pool}
[policies]
dir = "{dir}"
cache = "{folder}/compiled"
[profile]
dir = "{folder}/profiles"
"#,
        zoo = folder.join("zoo").display(),
        policy = options
            .component
            .map_or("edf-fallback", |(policy, _)| policy),
        pool = options.pool,
        worker = options.worker,
        server = options.server,
        dir = policies.display(),
        folder = folder.display(),
    );
    let file = policies.join("switchyard.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    command.args(["serve", "--config"]).arg(&file);
    Contender {
        grpc: Some(format!("127.0.0.1:{grpc}")),
        ..Contender::start(name, port, &mut command)
    }
}

/// Where components are: as the environment says, or where `cargo xtask plugins` puts them.
fn components(variable: &str, folder: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../target")
                .join(folder)
        },
        PathBuf::from,
    )
}

/// A port without a listener.
fn free_port() -> u16 {
    free_ports(1)
}

// === impl ServerOptions ===

impl<'a> ServerOptions<'a> {
    /// No component: the native fallback.
    pub(crate) fn fallback() -> Self {
        Self {
            component: None,
            pool: "",
            server: String::new(),
            worker: WORKER.to_owned(),
        }
    }

    /// The native fallback, which sends traces of this share of the requests.
    pub(crate) fn traced(collector: SocketAddr, share: f64) -> Self {
        Self {
            server: format!("traces = {{ endpoint = \"http://{collector}\", share = {share:.2} }}"),
            ..Self::fallback()
        }
    }

    /// The native fallback over a worker at another address.
    pub(crate) fn remote(url: &str) -> Self {
        Self {
            worker: format!("{WORKER}\nremote = {{ url = \"{url}\" }}"),
            ..Self::fallback()
        }
    }

    /// One of the shipped policies.
    pub(crate) fn policy(name: &'a str) -> Self {
        let from = components("SWITCHYARD_POLICIES", "policies");
        Self {
            component: Some((name, from)),
            pool: "",
            server: String::new(),
            worker: WORKER.to_owned(),
        }
    }

    /// One of the tests' components, which may leave requests pending as long as it likes.
    pub(crate) fn guest(name: &'a str) -> Self {
        let from = components("SWITCHYARD_GUESTS", "policies-test");
        Self {
            component: Some((name, from)),
            pool: "patience_ms = 600000",
            server: String::new(),
            worker: WORKER.to_owned(),
        }
    }
}

// === impl Contender ===

impl Contender {
    /// A process that is to listen on `port`.
    pub(crate) fn start(name: &str, port: u16, command: &mut Command) -> Self {
        let mut process = Process::start(command.env("RUST_LOG", "warn")).unwrap();
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(!process.has_ended(), "{name} has ended");
            assert!(began.elapsed() < START_MAX, "{name} does not start");
            std::thread::sleep(Duration::from_millis(2));
        }
        Self {
            name: name.to_owned(),
            url: format!("http://127.0.0.1:{port}/v2/models/{APP}/infer"),
            takes_binary: true,
            names: NAMES,
            grpc: None,
            process: Some(process),
        }
    }

    /// A server that runs already.
    pub(crate) fn elsewhere(name: &str, url: &str) -> Self {
        Self {
            name: name.to_owned(),
            url: url.to_owned(),
            takes_binary: true,
            names: NAMES,
            grpc: None,
            process: None,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        self.place().0
    }

    /// Where it listens, and the path of its model there.
    pub(crate) fn place(&self) -> (&str, &str) {
        let rest = self.url.strip_prefix("http://").unwrap();
        rest.split_at(rest.find('/').unwrap_or(rest.len()))
    }

    /// Memory of its process that is resident now; 0 for a peer whose process is not ours.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let process = self.process.as_ref();
        process.map_or(0, Process::resident_bytes)
    }

    /// CPU time its process has taken so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.process.as_ref().map(Process::cpu)
    }
}
