//! The tarball: unpacked anywhere, its program finds the files next to it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use switchyard_kit::shell;

use super::release::Release;
use crate::files::{anew, copy_folder, file};
use crate::workspace::Workspace;

/// Packs `switchyard-VERSION-ARCHITECTURE.tar.gz`: `bin`, `share`, `etc` and the unit.
pub(super) fn pack(workspace: &Workspace, release: &Release, tree: &Path) -> Result<PathBuf> {
    let Release {
        version,
        architecture,
        folder,
    } = release;
    let name = format!("switchyard-{version}-{architecture}");
    let root = folder.join(&name);
    anew(&root)?;
    for part in ["bin", "share"] {
        copy_folder(&tree.join("usr").join(part), &root.join(part))?;
    }
    copy_folder(&tree.join("etc"), &root.join("etc"))?;
    copy_folder(&tree.join("lib/systemd"), &root.join("systemd"))?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        file(&workspace.root.join(licence), &root.join(licence))?;
    }
    let tarball = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--gzip",
        "--owner=0",
        "--group=0",
        "--sort=name",
        "--file",
    ]);
    tar.arg(&tarball).arg("--directory").arg(folder).arg(&name);
    shell::run(&mut tar)?;
    Ok(tarball)
}
