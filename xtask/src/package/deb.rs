//! The Debian package, packed by `dpkg-deb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use switchyard_kit::shell;

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
        ("@GLIBC@", glibc),
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

/// The newest `GLIBC_2.X` among a program's symbol versions, without the prefix.
fn newest_glibc(program: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"GLIBC_2.";
    let starts = program.windows(MARK.len()).enumerate();
    let starts = starts.filter(|(_, bytes)| *bytes == MARK);
    let minors = starts.filter_map(|(at, _)| {
        let rest = &program[at + MARK.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&rest[..digits])
            .ok()?
            .parse::<u32>()
            .ok()
    });
    minors.max().map(|minor| format!("2.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_is_found() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(program).as_deref(), Some("2.34"));
        assert_eq!(newest_glibc(b"static"), None);
    }
}
