//! Workers and schedulers on a real etcd (`link/real_etcd.rs`, `live/etcd.rs`). Debian's package is unpacked below
//! `target` if the machine has no etcd: no service is started.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use switchyard_kit::{cargo, shell};

use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// Runs the tests that need etcd.
///
/// # Errors
/// There is no etcd to be had, a build fails, or a test does.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let program = program(workspace)?;
    plugins::build(workspace, Guests::Include)?;
    let mut test = cargo::host(&workspace.root);
    test.args([
        "test",
        "--workspace",
        "--test",
        "link",
        "--test",
        "live",
        "--",
    ]);
    // One at a time: they measure times.
    test.args(["--ignored", "--nocapture", "--test-threads=1", "etcd::"]);
    test.env("SWITCHYARD_ETCD", program);
    test.env("SWITCHYARD_POLICIES", plugins::policies(workspace));
    test.env("SWITCHYARD_GUESTS", plugins::guests(workspace));
    shell::run(&mut test)
}

fn program(workspace: &Workspace) -> Result<PathBuf> {
    if Command::new("etcd").arg("--version").output().is_ok() {
        return Ok(PathBuf::from("etcd"));
    }
    let folder = workspace.target("etcd");
    let program = folder.join("usr/bin/etcd");
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut download = Command::new("apt-get");
    download.args(["download", "etcd-server"]);
    download.current_dir(&folder);
    if shell::run(&mut download).is_err() {
        bail!("install etcd, and try again: https://etcd.io/docs/latest/install");
    }
    let unpack = "dpkg-deb --extract etcd-server_*.deb .";
    shell::run(Command::new("sh").args(["-c", unpack]).current_dir(&folder))?;
    Ok(program)
}
