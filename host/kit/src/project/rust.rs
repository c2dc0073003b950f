//! Rust: cargo, then the encoder.

use anyhow::{Context, Result};

use super::folder::ProjectFolder;
use crate::{cargo, component, toolchain};

/// The profile in new projects. A project without it is built with `release`.
const PROFILE: &str = "wasm";

pub(super) fn name(project: &ProjectFolder) -> Result<String> {
    let manifest = manifest(project)?;
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"));
    let name = name.and_then(toml::Value::as_str);
    Ok(name.context("Cargo.toml has no package.name")?.to_owned())
}

pub(super) fn component(project: &ProjectFolder) -> Result<Vec<u8>> {
    let manifest = manifest(project)?;
    let has_profile = manifest
        .get("profile")
        .is_some_and(|p| p.get(PROFILE).is_some());
    let profile = if has_profile { PROFILE } else { "release" };
    let toolchain = toolchain::find()?;
    eprintln!("wasm toolchain: {}", toolchain.summary());
    let mut command = toolchain.cargo_build(&project.path);
    command.args(["--lib", "--profile", profile]);
    let artifacts = cargo::build(&mut command)?;
    let module = cargo::module(&artifacts, &project.path.join("Cargo.toml")).context(
        "cargo made no .wasm file: set crate-type = [\"cdylib\", \"rlib\"] in [lib] of Cargo.toml",
    )?;
    let bytes =
        std::fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
    component::encode(&bytes)
}

fn manifest(project: &ProjectFolder) -> Result<toml::Table> {
    project.read("Cargo.toml")?.parse().context("Cargo.toml")
}
