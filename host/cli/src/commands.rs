//! The commands of the binary, one file each.
//!
//! Exit codes: 0 done, 1 a check failed, 2 bad usage or bad input.

mod demo;
#[cfg(test)]
mod help;
mod models;
mod page;
mod policy;
mod prepare;
mod profile;
mod replay;
mod serve;
mod simulate;
mod train;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use switchyard_server::config::Config;
use switchyard_server::telemetry::{LogFormat, init_log};

/// The log filter if `RUST_LOG` is not set.
const LOG_DEFAULT: &str = "info";

/// The configuration that `serve` uses by default: the file at the root of the repository.
pub(crate) const SHIPPED: &str = include_str!("../../../switchyard.toml");

/// Name of [`SHIPPED`] in messages.
const SHIPPED_NAME: &str = "the shipped demo configuration";

/// An inference server whose scheduler is a WebAssembly policy.
#[derive(Debug, Parser)]
#[command(name = "switchyard", version, arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard serve --config switchyard.toml
  switchyard policy check target/policies/sneakpeek.wasm
  switchyard profile --out profiles/here.json
  switchyard simulate --policy fcfs --policy sneakpeek --workload poisson:400 \\
      --profile profiles/here.json
  switchyard replay main.rec --policy sneakpeek
  switchyard demo --quick

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a check failed, 2 bad
usage or bad input.")]
pub(crate) struct Cli {
    /// How log lines look; what is logged is up to RUST_LOG
    #[arg(long, global = true, value_enum, default_value_t)]
    log: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    Simulate(simulate::SimulateArgs),
    Replay(replay::ReplayArgs),
    Demo(demo::DemoArgs),
    Policy(policy::PolicyArgs),
    Profile(profile::ProfileArgs),
    Models(models::ModelsArgs),
    Train(train::TrainArgs),
    Prepare(prepare::PrepareArgs),
}

/// Why a command ended before its work was done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check failed: exit code 1.
    Check(String),
    /// Bad usage or bad input: exit code 2.
    Input(String),
}

// === impl Cli ===

impl Cli {
    /// Runs the command to its end. Call it before the process has a second thread: some commands
    /// set environment variables that candle reads.
    pub(crate) fn run(self) -> ExitCode {
        init_log(self.log, LOG_DEFAULT);
        let result = match self.command {
            Command::Serve(args) => serve::run(&args),
            Command::Demo(args) => demo::run(&args),
            Command::Policy(args) => policy::run(&args),
            Command::Profile(args) => profile::run(&args),
            Command::Models(args) => models::run(&args),
            Command::Simulate(args) => simulate::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Train(args) => train::run(&args),
            Command::Prepare(args) => prepare::run(&args),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        }
    }
}

/// Reads a configuration; without a file the shipped one, whose paths are relative to the current
/// folder.
fn read_config(file: Option<&Path>) -> Result<Config, Failure> {
    match file {
        Some(file) => Config::read(file),
        None => Config::parse(SHIPPED, Path::new(SHIPPED_NAME), Path::new("")),
    }
    .map_err(Failure::input)
}

// === impl Failure ===

impl Failure {
    /// Something that was given cannot be used.
    pub(crate) fn input(error: impl std::fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    /// Something did not come out as it must.
    pub(crate) fn check(error: impl std::fmt::Display) -> Self {
        Self::Check(error.to_string())
    }

    fn report(self) -> ExitCode {
        let (text, code) = match self {
            Self::Check(text) => (text, 1),
            Self::Input(text) => (text, 2),
        };
        eprintln!("error: {text}");
        ExitCode::from(code)
    }
}

/// A command-line value that must be positive.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value > 0.0 && f64::is_finite(value) => Ok(value),
        _ => Err("must be a positive number".to_owned()),
    }
}
