//! The Debian package, packed by `dpkg-deb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use switchyard_kit::shell;

use super::glibc::newest_glibc;
use super::release::Release;
use crate::files::{anew, copy_folder, file};
use crate::workspace::Workspace;

/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Packs `switchyard_VERSION_ARCHITECTURE.deb`.
pub(super) fn pack(workspace: &Workspace, release: &Release, tree: &Path) -> Result<PathBuf> {
    let root = release.folder.join("deb");
    anew(&root)?;
    copy_folder(tree, &root)?;
    let (sources, control) = (workspace.root.join("packaging/deb"), root.join("DEBIAN"));
    for script in SCRIPTS {
        file(&sources.join(script), &control.join(script))?;
    }
    changelog(workspace, release, &root)?;
    // Files in /etc: dpkg keeps the operator's changes.
    fs::write(
        control.join("conffiles"),
        "/etc/switchyard/switchyard.toml\n",
    )?;
    let binary = root.join("usr/bin/switchyard");
    let program = fs::read(&binary).with_context(|| binary.display().to_string())?;
    let glibc = newest_glibc(&program).context("the program names no version of glibc")?;
    let fields = [
        ("@VERSION@", release.version.clone()),
        ("@ARCHITECTURE@", release.architecture.to_owned()),
        ("@SIZE_KB@", (size(tree)? / 1024).to_string()),
        ("@GLIBC@", format!("2.{glibc}")),
    ];
    let template = sources.join("control.in");
    let mut text = fs::read_to_string(&template).with_context(|| template.display().to_string())?;
    for (field, value) in fields {
        text = text.replace(field, &value);
    }
    fs::write(control.join("control"), text)?;
    let Release {
        version,
        architecture,
        folder,
    } = release;
    let deb = folder.join(format!("switchyard_{version}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]);
    shell::run(dpkg.arg(&root).arg(&deb))?;
    fs::remove_dir_all(&root)?;
    Ok(deb)
}

/// Debian's changelog, which names that of the project.
fn changelog(workspace: &Workspace, release: &Release, root: &Path) -> Result<()> {
    let ours = workspace.root.join("CHANGELOG.md");
    let mut date = Command::new("date");
    date.args(["--rfc-email", "--utc", "--reference"]).arg(ours);
    let date = date.output().context("date")?.stdout;
    let template = workspace.root.join("packaging/deb/changelog.in");
    let text = fs::read_to_string(&template).with_context(|| template.display().to_string())?;
    let text = text
        .replace("@VERSION@", &release.version)
        .replace("@DATE@", String::from_utf8_lossy(&date).trim());
    let file = root.join("usr/share/doc/switchyard/changelog");
    fs::write(&file, text)?;
    let mut gzip = Command::new("gzip");
    shell::run(gzip.args(["--best", "--no-name"]).arg(&file))
}

fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
