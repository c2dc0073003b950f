//! Servers as processes of their own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::model::APP;

/// For a server to load its model and measure its profile.
const START_MAX: Duration = Duration::from_secs(60);

/// A server that answers at `url`.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) url: String,
    process: Option<Process>,
}

struct Process(Child);

/// Starts everybody. The policies are those of `cargo xtask plugins`.
pub(crate) fn all(folder: &Path, peers: &[(String, String)]) -> Vec<Contender> {
    let zoo = folder.join("zoo");
    let mut all = vec![
        bare("hyper", &zoo),
        bare("axum", &zoo),
        ours("switchyard, no policy", folder, ServerOptions::fallback()),
        ours("switchyard, fcfs", folder, ServerOptions::policy("fcfs")),
        ours(
            "switchyard, sneakpeek",
            folder,
            ServerOptions::policy("sneakpeek"),
        ),
    ];
    all.extend(peers.iter().map(|(name, url)| Contender {
        name: name.clone(),
        url: url.clone(),
        process: None,
    }));
    all
}

fn bare(name: &str, zoo: &Path) -> Contender {
    let port = free_port();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["bare", name, &port.to_string()]).arg(zoo);
    // A product of one row is not worth a second thread, and candle would take all there are.
    command.env("RAYON_NUM_THREADS", "1");
    Contender::start(name, port, &mut command)
}

/// What the server runs.
pub(crate) struct ServerOptions<'a> {
    /// Name and the folder that it is in; none: the component is not there, so that the native
    /// fallback serves.
    component: Option<(&'a str, PathBuf)>,
    pool: &'static str,
}

/// The server on one worker.
pub(crate) fn ours(name: &str, folder: &Path, options: ServerOptions<'_>) -> Contender {
    let (port, admin) = (free_port(), free_port());
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
admin = "127.0.0.1:{admin}"
[[app]]
name = "{APP}"
zoo = "{zoo}"
[[worker]]
name = "cpu"
threads = 1
memory_mb = 64
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
        policy = options.component.map_or("none", |(policy, _)| policy),
        pool = options.pool,
        dir = policies.display(),
        folder = folder.display(),
    );
    let file = policies.join("switchyard.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    command.args(["serve", "--config"]).arg(&file);
    Contender::start(name, port, &mut command)
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

/// One that nobody listens on at this moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

// === impl ServerOptions ===

impl<'a> ServerOptions<'a> {
    /// No component: the native fallback.
    pub(crate) fn fallback() -> Self {
        Self {
            component: None,
            pool: "",
        }
    }

    /// One of the shipped policies.
    pub(crate) fn policy(name: &'a str) -> Self {
        let from = components("SWITCHYARD_POLICIES", "policies");
        Self {
            component: Some((name, from)),
            pool: "",
        }
    }

    /// One of the tests' components, which may leave requests pending as long as it likes.
    pub(crate) fn guest(name: &'a str) -> Self {
        let from = components("SWITCHYARD_GUESTS", "policies-test");
        Self {
            component: Some((name, from)),
            pool: "patience_ms = 600000",
        }
    }
}

// === impl Contender ===

impl Contender {
    fn start(name: &str, port: u16, command: &mut Command) -> Self {
        let mut child = command
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = child.try_wait().unwrap();
            assert_eq!(ended, None, "{name} has ended");
            assert!(began.elapsed() < START_MAX, "{name} does not start");
            std::thread::sleep(Duration::from_millis(2));
        }
        Self {
            name: name.to_owned(),
            url: format!("http://127.0.0.1:{port}/v2/models/{APP}/infer"),
            process: Some(Process(child)),
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap();
        rest.split('/').next().unwrap()
    }

    /// Memory of its process that is resident now; 0 for a peer whose process is not ours.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let Some(process) = &self.process else {
            return 0;
        };
        let status = format!("/proc/{}/status", process.0.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap() * 1_024
    }

    /// CPU time its process has taken so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let pid = self.process.as_ref()?.0.id();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // After the name, which may hold anything: user and system time are fields 14 and 15.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let sum = ticks()? + ticks()?;
        let hertz = rustix::param::clock_ticks_per_second();
        Some(Duration::from_secs_f64(sum as f64 / hertz as f64))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
