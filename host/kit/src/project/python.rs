//! Python: pip in a virtual environment, then componentize-py.

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
    let list = project.read("requirements.txt")?;
    tools::once(&venv.join("installed.txt"), &list, || {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&venv);
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
    })?;
    let made = project.output("component.part")?;
    let mut command = Command::new(venv.join("bin/componentize-py"));
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
    tools::run(&mut command, "requirements.txt must name componentize-py.")?;
    take(&made)
}
