//! The fuzz targets of `host/cli/tests/fuzz`, for longer than the suite runs them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::Args;
use switchyard_kit::cargo;

use crate::plugins;
use crate::workspace::Workspace;

/// Begin of a target's line.
const MARK: &str = "fuzz: ";

/// Options of `fuzz`.
#[derive(Args)]
pub(crate) struct FuzzArgs {
    /// Seconds for each target; without it the executions of the suite
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Another seed gives other mutations
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Only targets whose test has this name
    #[arg(value_name = "NAME")]
    filter: Option<String>,
}

/// Prints a line per target: its executions, the share that was accepted, memory and time at most.
///
/// # Errors
/// A target fails: cargo's output names the input.
pub(crate) fn run(workspace: &Workspace, args: &FuzzArgs) -> Result<()> {
    let mut test = cargo::host(&workspace.root);
    test.args(["test", "--workspace", "--test", "fuzz", "--"]);
    test.arg("--nocapture").args(&args.filter);
    test.env("SWITCHYARD_GUESTS", plugins::guests(workspace));
    test.env("SWITCHYARD_FUZZ_SEED", args.seed.to_string());
    if let Some(seconds) = args.seconds {
        test.env("SWITCHYARD_FUZZ_SECONDS", seconds.to_string());
    }
    let mut running = test.stdout(Stdio::piped()).spawn().context("cargo")?;
    let output = running.stdout.take().context("cargo's output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some(at) = line.find(MARK) {
            println!("{}", &line[at + MARK.len()..]);
        }
    }
    if !running.wait()?.success() {
        bail!("a target failed; the message above names its input");
    }
    Ok(())
}
