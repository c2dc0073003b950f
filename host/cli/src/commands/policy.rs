//! `switchyard policy`: make, build, check and measure policies.

mod build;
mod check;
mod cost;
mod new;
mod report;

use clap::{Args, Subcommand};

use super::failure::Failure;

/// Make, build, check and measure policies
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard policy new my-policy
  switchyard policy build my-policy
  switchyard policy check my-policy/build/my-policy.wasm
  switchyard policy check target/policies/fcfs.wasm --json")]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    New(new::NewArgs),
    Build(build::BuildArgs),
    Check(check::CheckArgs),
    Cost(cost::CostArgs),
}

/// Runs the subcommand.
pub(super) fn run(args: &PolicyArgs) -> Result<(), Failure> {
    match &args.command {
        PolicyCommand::New(args) => new::run(args),
        PolicyCommand::Build(args) => build::run(args),
        PolicyCommand::Check(args) => check::run(args),
        PolicyCommand::Cost(args) => cost::run(args),
    }
}
