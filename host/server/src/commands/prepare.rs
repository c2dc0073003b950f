//! `switchyard prepare`: what a policy needs made before it serves.

mod profiled;
mod ramsis;
mod selection;

use clap::{Args, Subcommand};

use super::Failure;

/// Make what a policy needs before it serves
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard prepare ramsis --profile profiles/here.json --app image --slo-ms 150 --workers 4 \\
      --loads 50:400:50 --out target/policies/ramsis
  switchyard prepare selection --profile profiles/ramsis.json --workers 60 --loads 200:4000:200 \\
      --out target/policies/selection/image")]
pub(super) struct PrepareArgs {
    #[command(subcommand)]
    command: PrepareCommand,
}

#[derive(Debug, Subcommand)]
enum PrepareCommand {
    Ramsis(ramsis::RamsisArgs),
    Selection(selection::SelectionArgs),
}

/// Does what is asked for.
pub(super) fn run(args: &PrepareArgs) -> Result<(), Failure> {
    match &args.command {
        PrepareCommand::Ramsis(args) => ramsis::run(args),
        PrepareCommand::Selection(args) => selection::run(args),
    }
}
