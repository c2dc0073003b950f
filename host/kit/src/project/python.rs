//! Python: pip in a virtual environment, then componentize-py.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::folder::{ProjectFolder, take};
use super::tools;
use crate::contract;

const ADVICE: &str = "\
Install Python 3.10 or newer with pip and venv, then run the command again:
  Debian: apt-get install python3 python3-venv
  Fedora: dnf install python3
  macOS:  brew install python";

/// The module with the contract's calls.
const APP: &str = "app";

/// The variable with the path of an installed componentize-py, which the build then uses: it needs no
/// network.
const INSTALLED: &str = "SWITCHYARD_COMPONENTIZE_PY";

pub(super) fn name(project: &ProjectFolder) -> Result<String> {
    let manifest: toml::Table = project
        .read("pyproject.toml")?
        .parse()
        .context("pyproject.toml")?;
    let name = manifest
        .get("project")
        .and_then(|project| project.get("name"));
    let name = name.and_then(toml::Value::as_str);
    Ok(name
        .context("pyproject.toml has no project.name")?
        .to_owned())
}

pub(super) fn component(project: &ProjectFolder) -> Result<Vec<u8>> {
    let venv = project.path.join(".venv");
    let program = match std::env::var_os(INSTALLED) {
        Some(installed) => PathBuf::from(installed),
        None => {
            install(project, &venv)?;
            venv.join("bin/componentize-py")
        }
    };
    let made = project.output("component.part")?;
    let mut command = Command::new(program);
    command
        .current_dir(&project.path)
        .env("VIRTUAL_ENV", &venv)
        .arg("-d")
        .arg(project.contract()?)
        .args(["-w", contract::WORLD, "componentize", APP, "-o"])
        .arg(&made);
    if !project.wasi {
        command.arg("--stub-wasi");
    }
    let advice =
        format!("requirements.txt must name componentize-py, {INSTALLED} must be its path if set.");
    tools::run(&mut command, &advice)?;
    take(&made)
}

/// Installs the packages of requirements.txt into the virtual environment.
fn install(project: &ProjectFolder, venv: &Path) -> Result<()> {
    let list = project.read("requirements.txt")?;
    tools::once(&venv.join("installed.txt"), &list, || {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(venv);
        tools::run(make.current_dir(&project.path), ADVICE).context(ADVICE)?;
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(["-r", "requirements.txt"]);
        tools::run(pip.current_dir(&project.path), ADVICE)
    })
}
