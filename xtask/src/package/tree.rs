//! The files of an installation below `usr`, `etc` and `lib`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use switchyard_kit::{install, shell};

use super::release::Release;
use crate::files::{below, copy_folder};
use crate::workspace::Workspace;

/// Makes `target/package/tree`.
pub(super) fn make(workspace: &Workspace, release: &Release, program: &Path) -> Result<PathBuf> {
    let tree = release.folder.join("tree");
    anew(&tree)?;
    let (usr, packaging) = (tree.join("usr"), workspace.root.join("packaging"));
    let binary = usr.join("bin/switchyard");
    file(program, &binary)?;
    shell::run(Command::new("strip").arg(&binary))?;

    let share = usr.join("share/switchyard");
    copy_folder(&workspace.root.join("models/zoo"), &share.join("zoo"))?;
    let policies = workspace.target("policies");
    for component in below(&policies, |extension| extension == "wasm")? {
        let name = component.file_stem().unwrap_or_default().to_string_lossy();
        if component.parent() == Some(&policies) {
            install::policy(&policies, &name, &share.join("policies"))?;
        }
    }
    let profiles = workspace.root.join("profiles");
    for profile in below(&profiles, |extension| extension == "json")? {
        let name = profile.file_name().unwrap_or_default();
        // Others are of this machine.
        if name == "reference.json" || name.to_string_lossy().starts_with("schema-") {
            file(&profile, &share.join("profiles").join(name))?;
        }
    }
    for name in ["Dockerfile", "kserve.yaml"] {
        file(&packaging.join(name), &share.join("examples").join(name))?;
    }
    let docs = usr.join("share/doc/switchyard");
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "README.md"] {
        file(&workspace.root.join(name), &docs.join(name))?;
    }
    let licences = "License: Apache-2.0 or MIT, at your option: LICENSE-APACHE, LICENSE-MIT.\n";
    fs::write(docs.join("copyright"), licences).context("copyright")?;

    shell::run(Command::new(&binary).arg("manuals").arg(usr.join("share")))?;
    let pages = below(&usr.join("share/man"), |extension| extension == "1")?;
    shell::run(
        Command::new("gzip")
            .args(["--best", "--no-name"])
            .args(&pages),
    )?;

    let config = tree.join("etc/switchyard/switchyard.toml");
    file(&packaging.join("switchyard.toml"), &config)?;
    let unit = tree.join("lib/systemd/system/switchyard.service");
    file(&packaging.join("switchyard.service"), &unit)?;
    Ok(tree)
}

/// An empty folder.
pub(super) fn anew(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Copies a file into a folder that is made.
pub(super) fn file(from: &Path, onto: &Path) -> Result<()> {
    if let Some(folder) = onto.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::copy(from, onto).with_context(|| format!("{} to {}", from.display(), onto.display()))?;
    Ok(())
}
