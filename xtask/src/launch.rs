//! The demo and the server: builds them, then replaces this process by them.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;
use clap::Args;
use switchyard_kit::{cargo, shell};

use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// Options of `demo` and `serve`.
#[derive(Args)]
pub(crate) struct LaunchArgs {
    /// Cargo profile of the host; `dev` compiles sooner and serves slower
    #[arg(long, default_value = "release")]
    profile: String,
    /// Passed on to the `switchyard` command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Drives the server for a few seconds, swaps its policy, prints the table.
///
/// # Errors
/// A build fails; the demo's exit code is passed on.
pub(crate) fn demo(workspace: &Workspace, args: &LaunchArgs) -> Result<()> {
    let mut command = prepare(workspace, &args.profile)?;
    become_program(command.args(demo_arguments()).args(&args.args))
}

/// Leaves the server running in the foreground, on the shipped demo configuration.
///
/// # Errors
/// A build fails; the server's exit code is passed on.
pub(crate) fn serve(workspace: &Workspace, args: &LaunchArgs) -> Result<()> {
    let mut command = prepare(workspace, &args.profile)?;
    become_program(command.arg("serve").args(&args.args))
}

/// Arguments of the demo with the shipped policies and models, from the root.
pub(crate) fn demo_arguments() -> [&'static str; 5] {
    [
        "demo",
        "--policies",
        "target/policies",
        "--zoo",
        "models/zoo",
    ]
}

/// Builds policies and host; returns the host's program, to be started in the root.
fn prepare(workspace: &Workspace, profile: &str) -> Result<Command> {
    let built = plugins::build(workspace, Guests::Leave)?;
    eprint!("{}", plugins::table(&built));
    let mut build = cargo::host(&workspace.root);
    build.args([
        "build",
        "--profile",
        profile,
        "--package",
        "switchyard",
        "--bin",
        "switchyard",
    ]);
    let artifacts = cargo::build(&mut build)?;
    let program = cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")?;
    let mut command = Command::new(program);
    command.current_dir(&workspace.root);
    Ok(command)
}

/// Replaces this process, so that signals and the exit code are the program's own.
#[cfg(unix)]
fn become_program(command: &mut Command) -> Result<()> {
    use std::os::unix::process::CommandExt;

    cargo::forget_outer_cargo(command);
    eprintln!("starting: {}", shell::line(command));
    let error = command.exec();
    Err(anyhow::Error::new(error).context(format!("cannot start `{}`", shell::line(command))))
}

/// Runs the program to its end: this system cannot replace a process.
#[cfg(not(unix))]
fn become_program(command: &mut Command) -> Result<()> {
    cargo::forget_outer_cargo(command);
    eprintln!("starting: {}", shell::line(command));
    shell::run(command)
}
