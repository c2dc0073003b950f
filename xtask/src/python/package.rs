//! The module next to the files of its package, as an installation has them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use switchyard_kit::cargo;

use crate::files::{anew, copy_folder, file};
use crate::workspace::Workspace;

/// Makes `target/python/switchyard`; the folder for Python's path.
pub(super) fn make(workspace: &Workspace) -> Result<PathBuf> {
    let module = module(workspace)?;
    let packages = workspace.target("python");
    let package = packages.join("switchyard");
    anew(&package)?;
    copy_folder(&workspace.root.join("python/switchyard"), &package)?;
    file(&module, &package.join("_native.abi3.so"))?;
    Ok(packages)
}

/// `--examples` selects the features of the tests too, so that no dependency is built again.
fn module(workspace: &Workspace) -> Result<PathBuf> {
    let mut build = cargo::host(&workspace.root);
    let artifacts = cargo::build(build.args(["build", "--workspace", "--examples", "--lib"]))?;
    let manifest = workspace.root.join("python/Cargo.toml");
    let own = artifacts
        .iter()
        .filter(|built| built.manifest_path == manifest);
    let mut files = own.flat_map(|built| &built.filenames);
    let module = files.find(|file| file.extension().is_some_and(|extension| extension == "so"));
    let module = module.context("python/Cargo.toml builds no shared library")?;
    Ok(module.clone())
}
