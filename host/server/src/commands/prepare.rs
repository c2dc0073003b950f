//! `switchyard prepare`: the offline parts of policies.

mod selection;

use clap::{Args, Subcommand};

use super::Failure;

/// Make what a policy needs beforehand: tables, measurements
#[derive(Debug, Args)]
pub(super) struct PrepareArgs {
    #[command(subcommand)]
    policy: Policy,
}

#[derive(Debug, Subcommand)]
enum Policy {
    Selection(selection::SelectionArgs),
}

/// Makes it and prints what was made.
pub(super) fn run(args: &PrepareArgs) -> Result<(), Failure> {
    match &args.policy {
        Policy::Selection(args) => selection::run(args),
    }
}
