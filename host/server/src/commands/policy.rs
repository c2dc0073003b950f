//! `switchyard policy`: what is done with a policy outside a server.

mod check;
mod report;

use clap::{Args, Subcommand};

use super::Failure;

/// Work on policies
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard policy check target/policies/fcfs.wasm
  switchyard policy check my-policy.wasm --json")]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    Check(check::CheckArgs),
}

/// Does what is asked for.
pub(super) fn run(args: &PolicyArgs) -> Result<(), Failure> {
    match &args.command {
        PolicyCommand::Check(args) => check::run(args),
    }
}
