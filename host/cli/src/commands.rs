//! The commands of the binary, one file each.
//!
//! Exit codes: 0 done, 1 a check failed, 2 bad usage or bad input.

mod add;
mod arena;
mod config_file;
mod ctl;
mod demo;
mod draft;
mod failure;
#[cfg(test)]
mod help;
mod manuals;
mod measure;
mod models;
mod noise;
mod notify;
mod numbers;
mod output;
mod overload;
mod page;
mod policy;
mod prepare;
mod print;
mod profile;
mod remove;
mod replay;
mod resident;
mod running;
mod serve;
mod serving;
mod signals;
mod simulate;
mod soak;
mod train;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
pub(crate) use draft::write_file;
pub(crate) use failure::Failure;
use switchyard_server::telemetry::{LogFormat, init_log};

/// The log filter if `RUST_LOG` is not set.
const LOG_DEFAULT: &str = "info";

/// An inference server whose scheduler is a WebAssembly policy.
#[derive(Debug, Parser)]
#[command(name = "switchyard", version, arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard add resnet50.onnx --classes imagenet.txt
  switchyard serve --config switchyard.toml
  switchyard policy check target/policies/sneakpeek.wasm
  switchyard profile --out profiles/here.json
  switchyard simulate --policy fcfs --policy sneakpeek --workload poisson:400 \\
      --profile profiles/here.json
  switchyard replay main.rec --policy sneakpeek
  switchyard ctl swap next --token operator.token
  switchyard demo --quick

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 a check failed, 2 bad
usage or bad input.")]
pub(crate) struct Cli {
    /// Format of log lines; RUST_LOG selects them
    #[arg(long, global = true, value_enum, default_value_t)]
    log: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
    Serve(serve::ServeArgs),
    Worker(worker::WorkerArgs),
    Simulate(simulate::SimulateArgs),
    Arena(arena::ArenaArgs),
    Ctl(ctl::CtlArgs),
    Replay(replay::ReplayArgs),
    Soak(soak::SoakArgs),
    Demo(demo::DemoArgs),
    Overload(overload::OverloadArgs),
    Policy(policy::PolicyArgs),
    Profile(profile::ProfileArgs),
    Measure(measure::MeasureArgs),
    Models(models::ModelsArgs),
    Train(train::TrainArgs),
    Prepare(prepare::PrepareArgs),
    #[command(hide = true)]
    Manuals(manuals::ManualsArgs),
}

// === impl Cli ===

impl Cli {
    /// Runs the command to its end. Call it before the process has a second thread: some commands
    /// set environment variables that candle reads.
    pub(crate) fn run(self) -> ExitCode {
        let is_server = matches!(self.command, Command::Serve(_) | Command::Worker(_));
        if !is_server {
            init_log(self.log, LOG_DEFAULT);
        }
        let result = match self.command {
            Command::Serve(args) => serve::run(&args, self.log, LOG_DEFAULT),
            Command::Worker(args) => worker::run(&args, self.log, LOG_DEFAULT),
            Command::Add(args) => add::run(&args),
            Command::Remove(args) => remove::run(&args),
            Command::Demo(args) => demo::run(&args),
            Command::Overload(args) => overload::run(&args),
            Command::Policy(args) => policy::run(&args),
            Command::Profile(args) => profile::run(&args),
            Command::Measure(args) => measure::run(&args),
            Command::Models(args) => models::run(&args),
            Command::Simulate(args) => simulate::run(&args),
            Command::Arena(args) => arena::run(&args),
            Command::Ctl(args) => ctl::run(&args),
            Command::Soak(args) => soak::run(&args),
            Command::Replay(args) => replay::run(&args),
            Command::Train(args) => train::run(&args),
            Command::Prepare(args) => prepare::run(&args),
            Command::Manuals(args) => manuals::run(&args, Self::command()),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        }
    }
}
