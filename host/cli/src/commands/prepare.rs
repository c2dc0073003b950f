//! `switchyard prepare`: the artifacts that a policy needs before it serves.

mod ppo_router;
mod profiled;
mod ramsis;
mod ramsis_table;
mod selection;

use clap::{Args, Subcommand};

use super::failure::Failure;

/// Make the artifacts of a policy: tables, measurements, weights
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  switchyard prepare ramsis --profile profiles/here.json --app image --slo-ms 150 --workers 4 \\
      --loads 50:400:50 --out target/policies/ramsis
  switchyard prepare selection --profile profiles/ramsis.json --slo-ms 150 --workers 60 \\
      --loads 200:4000:100 --out target/policies/selection/image
  switchyard prepare ppo-router --workload mmpp:180,10,0.036,0.002 --out target/policies/ppo-router")]
pub(super) struct PrepareArgs {
    #[command(subcommand)]
    command: PrepareCommand,
}

#[derive(Debug, Subcommand)]
enum PrepareCommand {
    PpoRouter(ppo_router::PpoRouterArgs),
    Ramsis(ramsis::RamsisArgs),
    RamsisTable(ramsis_table::RamsisTableArgs),
    Selection(selection::SelectionArgs),
}

/// Runs the subcommand.
pub(super) fn run(args: &PrepareArgs) -> Result<(), Failure> {
    match &args.command {
        PrepareCommand::PpoRouter(args) => ppo_router::run(args),
        PrepareCommand::Ramsis(args) => ramsis::run(args),
        PrepareCommand::RamsisTable(args) => ramsis_table::run(args),
        PrepareCommand::Selection(args) => selection::run(args),
    }
}
