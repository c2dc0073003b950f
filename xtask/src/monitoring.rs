//! The files of `monitoring/` on a real Prometheus and a real server (`check.py`). Debian's package is
//! installed if the machine has no Prometheus.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use switchyard_kit::{cargo, shell};

use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

const CHECK: &str = include_str!("monitoring/check.py");

/// Options of `monitoring`.
#[derive(Args)]
pub(crate) struct MonitoringArgs {
    /// Cargo profile of the host
    #[arg(long, default_value = "dev")]
    profile: String,
}

/// Checks and tests the rules, evaluates every expression, and fires alerts by injected faults.
///
/// # Errors
/// Prometheus cannot be installed, a build fails, or an alert does not fire.
pub(crate) fn run(workspace: &Workspace, args: &MonitoringArgs) -> Result<()> {
    install()?;
    let rules = workspace.root.join("monitoring");
    for action in [
        ["check", "rules", "alerts.yml"],
        ["test", "rules", "alerts_test.yml"],
    ] {
        shell::run(Command::new("promtool").args(action).current_dir(&rules))?;
    }
    plugins::build(workspace, Guests::Include)?;
    let mut build = cargo::host(&workspace.root);
    build.args(["build", "--workspace", "--bin", "switchyard"]);
    build.args(["--profile", &args.profile]);
    let artifacts = cargo::build(&mut build)?;
    let program = cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")?;
    let folder = workspace.target("monitoring");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut check = Command::new("python3");
    check.args(["-c", CHECK]).arg(program).arg(&folder);
    check.arg(workspace.root.join("models/zoo"));
    check.arg(plugins::policies(workspace));
    check.arg(plugins::guests(workspace));
    shell::run(check.arg(rules))
}

fn install() -> Result<()> {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if is_there("promtool") && is_there("prometheus") {
        return Ok(());
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "--no-install-recommends", "prometheus"]);
    if shell::run(&mut install).is_err() {
        bail!(
            "install Prometheus with its promtool, and try again: https://prometheus.io/download"
        );
    }
    Ok(())
}
