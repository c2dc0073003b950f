//! JavaScript: npm, then the project's `build` script, which calls componentize-js.

use std::process::Command;

use anyhow::{Context, Result};

use super::folder::{ProjectFolder, take};
use super::tools;

const ADVICE: &str = "\
Install Node.js 20 or newer with npm, then run the command again:
  Debian: apt-get install nodejs npm
  Fedora: dnf install nodejs npm
  macOS:  brew install node";

pub(super) fn name(project: &ProjectFolder) -> Result<String> {
    let package: serde_json::Value =
        serde_json::from_str(&project.read("package.json")?).context("package.json")?;
    let name = package["name"].as_str();
    Ok(name.context("package.json has no name")?.to_owned())
}

pub(super) fn component(project: &ProjectFolder) -> Result<Vec<u8>> {
    let npm = || {
        let mut npm = Command::new("npm");
        npm.current_dir(&project.path);
        npm
    };
    let list = project.read("package.json")?;
    let stamp = project.path.join("node_modules/.installed.json");
    tools::once(&stamp, &list, || {
        tools::run(npm().args(["install", "--no-audit", "--no-fund"]), ADVICE)
    })?;
    let made = project.output("component.part")?;
    let mut build = npm();
    build.args(["run", "build", "--silent", "--"]);
    build.arg(&made).arg(project.contract()?);
    if project.wasi {
        build.arg("wasi");
    }
    tools::run(&mut build, ADVICE)?;
    take(&made)
}
