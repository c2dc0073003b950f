//! The WIT package that policies are built against. It is part of this program, so that a project
//! needs no repository.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use include_dir::{Dir, include_dir};

use crate::install;

/// The contract's folder in a project. The SDK's sources read it from there too.
pub const FOLDER: &str = "wit/0.2";

/// The folders of older versions, newest first: a project that has one of these stays on its version.
const OLDER: [&str; 1] = ["wit/0.1"];

/// The world of a policy's component.
pub const WORLD: &str = "policy";

/// The interface that a policy must export, without its version.
pub(crate) const EXPORT: &str = "switchyard:policy/scheduling@";

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../wit/0.2");

/// The files of the contract, by name.
pub(crate) fn files() -> impl Iterator<Item = (&'static Path, &'static [u8])> {
    FILES.files().map(|file| (file.path(), file.contents()))
}

/// The folder with the contract that a project is built against: its own, otherwise this kit's,
/// which is written below the build folder.
///
/// # Errors
/// When the contract cannot be written.
pub(crate) fn of_project(folder: &Path, build: &Path) -> Result<PathBuf> {
    let mut known = [FOLDER]
        .into_iter()
        .chain(OLDER)
        .map(|wit| folder.join(wit));
    if let Some(own) = known.find(|own| own.is_dir()) {
        return Ok(own);
    }
    let ours = build.join(FOLDER);
    for (name, contents) in files() {
        install::write(&ours.join(name), contents).context("cannot write the contract")?;
    }
    Ok(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_without_a_contract_gets_ours() {
        let folder = tempfile::tempdir().unwrap();
        let build = folder.path().join("build");
        let ours = of_project(folder.path(), &build).unwrap();
        assert!(ours.starts_with(&build) && ours.join("world.wit").is_file());
        // A project made for 0.1 is built for 0.1 until it gets the newer folder.
        for wit in ["wit/0.1", FOLDER] {
            let own = folder.path().join(wit);
            std::fs::create_dir_all(&own).unwrap();
            assert_eq!(of_project(folder.path(), &build).unwrap(), own);
        }
    }
}
