//! The Debian package in a bare Debian: installed, configured, serving, removed.
//!
//! mmdebstrap makes the root once, with nothing but essential packages and apt. The time runs from the
//! package's installation to the first answer, which includes the measurement of the machine.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use switchyard_kit::shell;

use super::answer::{self, LIMIT};
use super::chroot::inside;
use super::release::Release;
use crate::files::anew;

/// Where the package lies in the bare root.
pub(super) const PACKAGE: &str = "/tmp/switchyard.deb";

/// The configuration of the package.
const CONFIG: &str = "/etc/switchyard/switchyard.toml";

/// Highest exposure of the unit, of 100, as `systemd-analyze security` counts.
const EXPOSURE_MAX: &str = "20";

/// Installs and serves; a line with the times.
pub(super) fn check(release: &Release, deb: &Path) -> Result<String> {
    let has_lintian = shell::answer(Command::new("lintian").arg("--version")).is_some();
    ensure!(has_lintian, "`apt-get install lintian` brings the tool");
    let mut lintian = Command::new("lintian");
    shell::run(lintian.args(["--fail-on", "error,warning"]).arg(deb))?;
    let root = release.folder.join("root");
    unpack(release, &root)?;
    fs::copy(deb, root.join(PACKAGE.trim_start_matches('/')))?;
    ensure!(
        !root.join("usr/bin/cargo").exists() && !root.join("usr/bin/rustc").exists(),
        "the root is not bare: it has Rust"
    );
    let [http, admin] = answer::free_addresses()?;
    let began = Instant::now();
    let mut apt = inside(&root, None);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    shell::run(apt.args(["apt-get", "install", "--yes", PACKAGE]))?;
    let installed = began.elapsed();
    let mut server = inside(&root, Some("switchyard"));
    server
        .env("SWITCHYARD_SERVER__HTTP", http.to_string())
        .env("SWITCHYARD_SERVER__ADMIN", admin.to_string())
        .args(["/usr/bin/switchyard", "serve", "--config", CONFIG]);
    let answered = answer::first(&mut server, http, began)?;
    look(&root)?;
    let mut dpkg = inside(&root, None);
    shell::run(dpkg.args(["dpkg", "--purge", "switchyard"]))?;
    for left in [
        "var/lib/switchyard",
        "etc/switchyard",
        "usr/share/switchyard",
    ] {
        ensure!(!root.join(left).exists(), "/{left} is left after a purge");
    }
    fs::remove_dir_all(&root)?;
    Ok(format!(
        "bare Debian: installed after {:.1} s, first answer after {:.1} s (limit {} s)",
        installed.as_secs_f64(),
        answered.as_secs_f64(),
        LIMIT.as_secs()
    ))
}

/// A bare root, from an archive that is made once.
pub(super) fn unpack(release: &Release, root: &Path) -> Result<()> {
    let archive = release.folder.join("bare.tar");
    if !archive.exists() {
        let suite = suite()?;
        let mut bootstrap = Command::new("mmdebstrap");
        bootstrap.args(["--variant=minbase", &suite]).arg(&archive);
        shell::run(&mut bootstrap).context("`apt-get install mmdebstrap` brings the tool")?;
    }
    anew(root)?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(&archive);
    shell::run(tar.arg("--directory").arg(root))
}

/// The release of Debian that this machine runs.
fn suite() -> Result<String> {
    let file = "/etc/os-release";
    let text = fs::read_to_string(file).context(file)?;
    let mut names = text.lines();
    let name = names.find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(name.unwrap_or("bookworm").trim_matches('"').to_owned())
}

/// The parts of the package that a server does not show.
fn look(root: &Path) -> Result<()> {
    for file in [
        "usr/share/man/man1/switchyard.1.gz",
        "usr/share/man/man1/switchyard-serve.1.gz",
        "usr/share/bash-completion/completions/switchyard",
        "usr/share/zsh/vendor-completions/_switchyard",
        "usr/share/fish/vendor_completions.d/switchyard.fish",
        "lib/systemd/system/switchyard.service",
        "var/lib/switchyard/policies/sneakpeek.wasm",
    ] {
        ensure!(root.join(file).is_file(), "/{file} is missing");
    }
    let query = [
        "dpkg-query",
        "--show",
        "--showformat=${Conffiles}",
        "switchyard",
    ];
    let conffiles = shell::answer(inside(root, None).args(query)).unwrap_or_default();
    ensure!(conffiles.contains(CONFIG), "{CONFIG} is no conffile");
    let unit = root.join("lib/systemd/system/switchyard.service");
    let security = [
        "security",
        "--offline=yes",
        "--no-pager",
        "--threshold",
        EXPOSURE_MAX,
    ];
    if shell::answer(Command::new("systemd-analyze").arg("--version")).is_none() {
        eprintln!("systemd-analyze is not installed: the unit is not judged");
        return Ok(());
    }
    let judged = Command::new("systemd-analyze")
        .args(security)
        .arg(&unit)
        .output()?;
    if !judged.status.success() {
        let report = String::from_utf8_lossy(&judged.stdout).into_owned();
        let error = String::from_utf8_lossy(&judged.stderr).into_owned();
        bail!("systemd-analyze security refuses the unit:\n{report}{error}");
    }
    Ok(())
}
