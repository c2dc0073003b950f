//! The files of an installation below `usr`, `etc` and `lib`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use switchyard_kit::shell;

use super::release::Release;
use super::share;
use crate::files::{anew, below, copy_folder, file};
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
    share::fill(workspace, &share)?;
    let examples = share.join("examples");
    file(&packaging.join("Dockerfile"), &examples.join("Dockerfile"))?;
    copy_folder(&packaging.join("kubernetes"), &examples.join("kubernetes"))?;
    let docs = usr.join("share/doc/switchyard");
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "README.md"] {
        file(&workspace.root.join(name), &docs.join(name))?;
    }
    file(&packaging.join("deb/copyright"), &docs.join("copyright"))?;

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
