//! The real binary, as an operator starts and stops it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::fixture::fixture;
use super::test_bed::{PATIENCE, Setup};

/// A running `switchyard serve`, killed when dropped.
pub(crate) struct Process {
    pub(crate) http: SocketAddr,
    /// `None` without such a port.
    pub(crate) grpc: Option<SocketAddr>,
    pub(crate) admin: SocketAddr,
    child: Child,
    /// Lines of stderr.
    said: Arc<Mutex<Vec<String>>>,
    reading: Option<JoinHandle<()>>,
    folder: TempDir,
}

/// The command, before its arguments.
pub(crate) fn switchyard() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    command.env_remove("RUST_LOG");
    command
}

/// Runs `serve` on a file that it should refuse.
pub(crate) fn serve_file(file: &Path) -> Output {
    switchyard()
        .args(["serve", "--config"])
        .arg(file)
        .output()
        .unwrap()
}

// === impl Process ===

impl Process {
    /// Starts it and waits until it says where it listens.
    pub(crate) fn serve(setup: &Setup) -> Self {
        Self::serve_by(switchyard(), setup)
    }

    /// As [`serve`](Self::serve), with at most this many open files.
    pub(crate) fn serve_with_files(setup: &Setup, most: u32) -> Self {
        let mut shell = Command::new("sh");
        let limited = format!("ulimit -n {most}; exec \"$0\" \"$@\"");
        shell.args(["-c", &limited, env!("CARGO_BIN_EXE_switchyard")]);
        shell.env_remove("RUST_LOG");
        Self::serve_by(shell, setup)
    }

    /// As [`serve`](Self::serve), by another command.
    pub(crate) fn serve_by(command: Command, setup: &Setup) -> Self {
        let folder = TempDir::new().unwrap();
        setup.furnish(folder.path());
        let file = folder.path().join("switchyard.toml");
        std::fs::write(&file, setup.toml(fixture(), folder.path())).unwrap();
        let mut process = Self::start_by(command, &file, folder);
        let listening = process.wait_for_line("listening");
        let address = |name: &str| listening[name].as_str().unwrap().parse().unwrap();
        (process.http, process.admin) = (address("http"), address("admin"));
        process.grpc = listening.get("grpc").map(|_| address("grpc"));
        process
    }

    /// Starts it on a file without waiting for anything. It keeps the folder.
    pub(crate) fn start(file: &Path, folder: TempDir) -> Self {
        Self::start_by(switchyard(), file, folder)
    }

    fn start_by(mut command: Command, file: &Path, folder: TempDir) -> Self {
        command.args(["--log", "json", "serve", "--config"]);
        command.arg(file);
        Self::spawn(command, folder)
    }

    /// Runs a command that serves with its log as JSON. It keeps the folder.
    pub(crate) fn spawn(mut command: Command, folder: TempDir) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let reading = std::thread::spawn({
            let said = Arc::clone(&said);
            move || {
                for line in stderr.lines() {
                    said.lock().unwrap().push(line.unwrap());
                }
            }
        });
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            http: nowhere,
            grpc: None,
            admin: nowhere,
            child,
            said,
            reading: Some(reading),
            folder,
        }
    }

    /// Starts it with a stderr that is full and has no reader, on the addresses of the file.
    pub(crate) fn start_unread(file: &Path, folder: TempDir, http: SocketAddr) -> Self {
        /// Capacity of a pipe on Linux.
        const PIPE_BYTES: usize = 64 << 10;
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, &vec![b'x'; PIPE_BYTES]).unwrap();
        let child = switchyard()
            .args(["serve", "--config"])
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(writer)
            .spawn()
            .unwrap();
        // Open, and never read.
        let reading = std::thread::spawn(move || std::mem::forget(reader));
        Self {
            http,
            grpc: None,
            admin: http,
            child,
            said: Arc::default(),
            reading: Some(reading),
            folder,
        }
    }

    /// The fields of the first line with this message, which must come.
    pub(crate) fn wait_for_line(&self, message: &str) -> Value {
        let give_up = Instant::now() + PATIENCE;
        loop {
            if let Some(fields) = self.lines(message).into_iter().next() {
                return fields;
            }
            let said = self.said.lock().unwrap().join("\n");
            assert!(Instant::now() < give_up, "waited for `{message}`:\n{said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The fields of all lines with this message so far.
    pub(crate) fn lines(&self, message: &str) -> Vec<Value> {
        let said = self.said.lock().unwrap();
        let lines = said
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let fields = lines.map(|mut line| line["fields"].take());
        fields
            .filter(|fields| fields["message"] == message)
            .collect()
    }

    /// The messages so far, in order.
    pub(crate) fn messages(&self) -> Vec<String> {
        let said = self.said.lock().unwrap();
        let lines = said
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter_map(|line| Some(line["fields"]["message"].as_str()?.to_owned()))
            .collect()
    }

    /// Starts it anew after its end, with the same configuration.
    pub(crate) fn again(mut self) -> Self {
        let empty = TempDir::new().unwrap();
        let folder = std::mem::replace(&mut self.folder, empty);
        let file = folder.path().join("switchyard.toml");
        let mut process = Self::start_by(switchyard(), &file, folder);
        let listening = process.wait_for_line("listening");
        let address = |name: &str| listening[name].as_str().unwrap().parse().unwrap();
        (process.http, process.admin) = (address("http"), address("admin"));
        process.wait_for_line("policy switched");
        process
    }

    /// Its folder, once it has ended.
    pub(crate) fn into_folder(mut self) -> TempDir {
        std::mem::replace(&mut self.folder, TempDir::new().unwrap())
    }

    /// The policy that is followed.
    pub(crate) fn policy(&self) -> PathBuf {
        self.folder.path().join("active.wasm")
    }

    /// Waits until it says where it listens.
    pub(crate) fn listening(&mut self) {
        let listening = self.wait_for_line("listening");
        let address = |name: &str| listening.get(name).map(|at| at.as_str().unwrap().parse());
        let (http, admin) = (address("http"), address("admin"));
        self.http = http.unwrap().unwrap();
        self.admin = admin.map_or(self.admin, Result::unwrap);
    }

    /// Memory that it holds.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mut lines = status.lines();
        let line = lines.find(|line| line.starts_with("VmRSS:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib / 1024
    }

    /// Sends SIGKILL and waits for its end.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end; everything it said has been read then.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let give_up = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < give_up,
                "it does not end: {:?}",
                self.messages()
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        self.reading.take().unwrap().join().unwrap();
        status
    }

    /// Its stdout, after its end.
    pub(crate) fn printed(&mut self) -> String {
        std::io::read_to_string(self.child.stdout.take().unwrap()).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
