//! The module next to the files of its package, as an installation has them.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use switchyard_kit::cargo;

use crate::files::{anew, copy_folder, file};
use crate::workspace::Workspace;

/// The module as a package, and the program that it must agree with.
pub(super) struct Built {
    /// The folder for Python's path.
    pub(super) packages: PathBuf,
    pub(super) program: OsString,
}

/// Makes `target/python/switchyard`.
pub(super) fn make(workspace: &Workspace) -> Result<Built> {
    let mut build = cargo::host(&workspace.root);
    // `--examples` selects the features of the tests too, so that no dependency is built again.
    build.args(["build", "--workspace", "--examples", "--lib"]);
    let artifacts = cargo::build(build.args(["--bin", "switchyard"]))?;
    let manifest = workspace.root.join("python/Cargo.toml");
    let own = artifacts
        .iter()
        .filter(|built| built.manifest_path == manifest);
    let mut files = own.flat_map(|built| &built.filenames);
    let module = files.find(|file| file.extension().is_some_and(|extension| extension == "so"));
    let module = module.context("python/Cargo.toml builds no shared library")?;
    let packages = workspace.target("python");
    let package = packages.join("switchyard");
    anew(&package)?;
    copy_folder(&workspace.root.join("python/switchyard"), &package)?;
    file(module, &package.join("_native.abi3.so"))?;
    let folder = workspace.root.join("host/cli");
    Ok(Built {
        packages,
        program: cargo::program(&artifacts, &folder, "switchyard")?,
    })
}
