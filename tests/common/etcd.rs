//! A real etcd, of `cargo xtask etcd`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::free_address::free_address;

/// A cluster of one member, killed when dropped.
pub(crate) struct RealEtcd {
    pub(crate) at: SocketAddr,
    data: TempDir,
    /// It and its clients show certificates.
    has_tls: bool,
    child: Option<Child>,
}

impl RealEtcd {
    pub(crate) fn start() -> Self {
        Self::start_with(false)
    }

    /// As [`start`](Self::start), with certificates of the tests on both sides.
    #[allow(dead_code)]
    pub(crate) fn start_tls() -> Self {
        Self::start_with(true)
    }

    fn start_with(has_tls: bool) -> Self {
        let mut etcd = Self {
            at: free_address(),
            data: TempDir::new().unwrap(),
            has_tls,
            child: None,
        };
        etcd.resume();
        etcd
    }

    /// Starts it on its data.
    pub(crate) fn resume(&mut self) {
        let program = std::env::var_os("SWITCHYARD_ETCD").expect("run `cargo xtask etcd`");
        let scheme = if self.has_tls { "https" } else { "http" };
        let clients = format!("{scheme}://{}", self.at);
        let peers = format!("http://{}", free_address());
        let mut command = Command::new(program);
        command.arg("--data-dir").arg(self.data.path());
        command.args(["--listen-client-urls", &clients]);
        command.args(["--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers]);
        command.args(["--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}")]);
        if self.has_tls {
            for (option, name) in [
                ("--cert-file", "server.pem"),
                ("--key-file", "server.key"),
                ("--trusted-ca-file", "ca.pem"),
            ] {
                command.arg(option).arg(certificate(name));
            }
            command.arg("--client-cert-auth");
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for RealEtcd {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A file of the tests' certificates.
pub(crate) fn certificate(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.join("../server/tests/tls").join(name)
}
