//! A real etcd, of `cargo xtask etcd`.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A cluster of one member, killed when dropped.
pub(crate) struct RealEtcd {
    pub(crate) at: SocketAddr,
    data: TempDir,
    child: Option<Child>,
}

impl RealEtcd {
    pub(crate) fn start() -> Self {
        let mut etcd = Self {
            at: free_address(),
            data: TempDir::new().unwrap(),
            child: None,
        };
        etcd.resume();
        etcd
    }

    /// Starts it on its data.
    pub(crate) fn resume(&mut self) {
        let program = std::env::var_os("SWITCHYARD_ETCD").expect("run `cargo xtask etcd`");
        let clients = format!("http://{}", self.at);
        let peers = format!("http://{}", free_address());
        let mut command = Command::new(program);
        command.arg("--data-dir").arg(self.data.path());
        command.args(["--listen-client-urls", &clients]);
        command.args(["--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers]);
        command.args(["--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}")]);
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

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
