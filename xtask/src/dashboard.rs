//! The dashboard of a real server in a headless Chromium (`dashboard/check.py`): live numbers, orders by keyboard,
//! an injected overload, and the screenshots of the book.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use switchyard_kit::{cargo, shell};

use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// Programs that the check runs, and the Debian packages that have them.
const PROGRAMS: [&str; 3] = ["python3", "chromium", "wrk"];

/// Options of `dashboard`.
#[derive(Args)]
pub(crate) struct DashboardArgs {
    /// Cargo profile of the host
    #[arg(long, default_value = "dev")]
    profile: String,
    /// 20 swaps, a promotion and a rollback from the browser under load, instead of the checks of the page
    #[arg(long)]
    orders: bool,
}

/// Builds policies and server, and drives the page.
///
/// # Errors
/// A program is missing, a build fails, or the page shows other numbers than the server.
pub(crate) fn run(workspace: &Workspace, args: &DashboardArgs) -> Result<()> {
    for program in PROGRAMS {
        if Command::new(program).arg("--version").output().is_err() {
            bail!(
                "{program}: not found. On Debian: apt-get install {}",
                PROGRAMS.join(" ")
            );
        }
    }
    plugins::build(workspace, Guests::Leave)?;
    let mut build = cargo::host(&workspace.root);
    build.args(["build", "--workspace", "--bin", "switchyard"]);
    build.args(["--profile", &args.profile]);
    let artifacts = cargo::build(&mut build)?;
    let program = cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")?;
    // Profiles and compiled policies are kept between runs.
    let folder = workspace.target("dashboard");
    for part in ["policies", "chromium"] {
        let part = folder.join(part);
        if part.exists() {
            fs::remove_dir_all(&part).with_context(|| part.display().to_string())?;
        }
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut check = Command::new("python3");
    check
        .arg("-B")
        .arg(workspace.root.join("xtask/src/dashboard/check.py"));
    check.arg(program).arg(&folder);
    check.arg(workspace.root.join("models/zoo"));
    check.arg(plugins::policies(workspace));
    check.arg(workspace.root.join("docs/figures"));
    shell::run(check.arg(if args.orders { "orders" } else { "page" }))
}
