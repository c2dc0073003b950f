//! The server with the encoder.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::client::APP;
use super::process::Process;
use super::text_zoo::{Answers, MINILM, write_app_of};

/// For a server to load its model and measure its profile.
const START_MAX: Duration = Duration::from_secs(180);

pub(crate) struct Server {
    pub(crate) port: u16,
    _process: Process,
}

// === impl Server ===

impl Server {
    /// Writes the encoder and has a build of the server serve it on one worker of one thread, without a policy.
    pub(crate) fn start(server: &Path, folder: &Path, slo_ms: f64) -> Self {
        let zoo = folder.join("zoo");
        write_app_of(&MINILM, &zoo, APP, Answers::Embeddings, &["only"]);
        let [port, admin] = free_ports();
        let config = format!(
            r#"[server]
http = "127.0.0.1:{port}"
admin = "127.0.0.1:{admin}"
[[app]]
name = "{APP}"
zoo = "{zoo}"
slo_ms = {slo_ms:?}
[[worker]]
name = "cpu"
threads = 1
memory_mb = 1024
[[pool]]
name = "main"
apps = ["{APP}"]
workers = ["cpu"]
policy = "edf-fallback"
[policies]
dir = "{folder}/policies"
cache = "{folder}/compiled"
[profile]
dir = "{folder}/profiles"
"#,
            zoo = zoo.display(),
            folder = folder.display(),
        );
        std::fs::create_dir_all(folder.join("policies")).unwrap();
        let file = folder.join("switchyard.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(server);
        command.args(["serve", "--config"]).arg(&file);
        let mut process = Process::start(command.env("RUST_LOG", "warn")).unwrap();
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(!process.has_ended(), "the server has ended");
            assert!(began.elapsed() < START_MAX, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            port,
            _process: process,
        }
    }
}

/// Two ports without listeners.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
