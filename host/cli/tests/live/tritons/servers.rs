//! Real Triton servers whose models sleep.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::super::client::Client;
use super::super::test_bed::PATIENCE;

/// Largest batch of each model.
pub(super) const BATCH_MAX: usize = 8;

/// A model of the servers, and the variant that it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct SleepingModel {
    pub(super) name: &'static str,
    pub(super) variant: &'static str,
    /// Its accuracy, of the variant's card.
    pub(super) accuracy: f64,
    base_ms: u32,
    row_ms: u32,
}

pub(super) const FAST: SleepingModel = SleepingModel {
    name: "fast",
    variant: "cnn-small",
    accuracy: 0.7334,
    base_ms: 24,
    row_ms: 6,
};

pub(super) const SLOW: SleepingModel = SleepingModel {
    name: "slow",
    variant: "resnet",
    accuracy: 0.8779,
    base_ms: 60,
    row_ms: 15,
};

/// One server. All its processes are killed when it is dropped.
pub(super) struct Triton {
    pub(super) grpc: SocketAddr,
    http: SocketAddr,
    child: Child,
    _folder: TempDir,
}

// === impl SleepingModel ===

impl SleepingModel {
    /// The time of a full batch.
    pub(super) fn full_batch(&self) -> Duration {
        let ms = self.base_ms + self.row_ms * BATCH_MAX as u32;
        Duration::from_millis(u64::from(ms))
    }

    /// Rows per second of a server that is never idle.
    pub(super) fn capacity(&self) -> f64 {
        BATCH_MAX as f64 / self.full_batch().as_secs_f64()
    }
}

// === impl Triton ===

impl Triton {
    pub(super) fn start() -> Self {
        Self::start_at(free_ports())
    }

    /// The program, which `cargo xtask tritons` names.
    fn python() -> PathBuf {
        let python = std::env::var_os("SWITCHYARD_TRITON").expect("run `cargo xtask tritons`");
        PathBuf::from(python)
    }

    /// With HTTP at this port, gRPC at the next one, and metrics at the one after.
    fn start_at(port: u16) -> Self {
        let folder = TempDir::new().unwrap();
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/triton/sleep.py");
        let python = Self::python();
        let mut command = Command::new(&python);
        command.arg(script).arg(port.to_string()).arg(folder.path());
        command.arg(BATCH_MAX.to_string());
        for SleepingModel {
            name,
            base_ms,
            row_ms,
            ..
        } in [FAST, SLOW]
        {
            command.arg(format!("{name}={base_ms},{row_ms}"));
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own, so that a signal reaches Triton and its models too.
        command.process_group(0);
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            grpc: at(port + 1),
            http: at(port),
            child: command.spawn().unwrap(),
            _folder: folder,
        }
    }

    /// Waits until all its models are ready.
    pub(super) async fn ready(&self) {
        let give_up = Instant::now() + PATIENCE;
        for model in [FAST, SLOW] {
            let path = format!("/v2/models/{}/ready", model.name);
            while !is_ready(self.http, &path).await {
                assert!(Instant::now() < give_up, "{path}: not ready");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }

    /// Sends SIGKILL to all its processes.
    pub(super) fn kill(&mut self) {
        let kill = format!("kill -KILL -{}", self.child.id());
        // An error means that they have ended.
        let _ = Command::new("sh")
            .args(["-c", &kill])
            .stderr(Stdio::null())
            .status();
        let _ = self.child.wait();
        self.remove_shared_memory();
    }

    /// A killed server leaves it behind.
    fn remove_shared_memory(&self) {
        let prefix = format!("sleep{}-", self.http.port());
        let Ok(entries) = std::fs::read_dir("/dev/shm") else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                // Another process may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// The same server anew.
    pub(super) fn again(&self) -> Self {
        Self::start_at(self.http.port())
    }
}

impl Drop for Triton {
    fn drop(&mut self) {
        self.kill();
    }
}

/// False as long as it does not listen.
async fn is_ready(http: SocketAddr, path: &str) -> bool {
    if tokio::net::TcpStream::connect(http).await.is_err() {
        return false;
    }
    let mut client = Client::connect(http).await;
    let answer = client.send("GET", path, String::new()).await;
    answer.is_ok_and(|answer| answer.status == 200)
}

/// The first of three free ports in a row.
fn free_ports() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let more = [1, 2].map(|more| TcpListener::bind(("127.0.0.1", port.saturating_add(more))));
        if port < u16::MAX - 2 && more.iter().all(Result::is_ok) {
            return port;
        }
    }
}
