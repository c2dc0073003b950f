//! Rust: cargo, then the encoder.

use anyhow::{Context, Result};

use super::Project;
use crate::{cargo, component, toolchain};

/// The profile that scaffolds have for policies; a project without it is built with `release`.
const PROFILE: &str = "wasm";

pub(super) fn name(project: &Project) -> Result<String> {
    let manifest = manifest(project)?;
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"));
    let name = name.and_then(toml::Value::as_str);
    Ok(name.context("Cargo.toml has no package.name")?.to_owned())
}

pub(super) fn component(project: &Project) -> Result<Vec<u8>> {
    let manifest = manifest(project)?;
    let has_profile = manifest
        .get("profile")
        .is_some_and(|p| p.get(PROFILE).is_some());
    let profile = if has_profile { PROFILE } else { "release" };
    let toolchain = toolchain::find()?;
    eprintln!("wasm toolchain: {}", toolchain.summary());
    let mut command = toolchain.cargo_build(&project.folder);
    command.args(["--lib", "--profile", profile]);
    let artifacts = cargo::build(&mut command)?;
    let module = cargo::module(&artifacts, &project.folder.join("Cargo.toml")).context(
        "cargo made no .wasm file: Cargo.toml needs [lib] with crate-type = [\"cdylib\", \"rlib\"]",
    )?;
    let bytes =
        std::fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
    component::encode(&bytes)
}

fn manifest(project: &Project) -> Result<toml::Table> {
    project.read("Cargo.toml")?.parse().context("Cargo.toml")
}
