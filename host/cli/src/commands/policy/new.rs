//! `switchyard policy new`: a project for a new policy.

use std::path::PathBuf;

use clap::Args;
use switchyard_kit::{Language, scaffold};

use crate::commands::failure::Failure;
use crate::commands::print;

/// Make a project for a new policy, which begins as earliest deadline first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard policy new my-policy
  switchyard policy new my-policy --lang python --dir ~/policies/my-policy

The project stands alone: it contains the contract, and in Rust the SDK. Its README.md describes
the files and the next steps.

Exit codes: 0 made, 2 the name is not valid for a policy, or the folder is not empty.")]
pub(super) struct NewArgs {
    /// Name of the policy, as in metrics: lower-case letters, digits and hyphens
    name: String,
    /// Its language: rust, python, js or c
    #[arg(long, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    lang: Language,
    /// Folder of the project [default: NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Makes the project and prints the next commands.
pub(super) fn run(args: &NewArgs) -> Result<(), Failure> {
    let folder = args.dir.clone().unwrap_or_else(|| args.name.clone().into());
    let wrong = |error| Failure::input(format!("{error:#}"));
    let files = scaffold::create(&folder, &args.name, args.lang).map_err(wrong)?;
    let (dir, name) = (folder.display(), &args.name);
    print::line(format_args!(
        "{dir}: a policy in {}, {} files. Next:\n  switchyard policy build {dir}",
        args.lang,
        files.len()
    ))?;
    // With many pending requests an interpreter exceeds a pool's default budget.
    let budget = match args.lang {
        Language::Rust | Language::C => "",
        Language::Python | Language::JavaScript => " --budget-ms 50",
    };
    print::line(format_args!(
        "  switchyard policy check {dir}/build/{name}.wasm{budget}"
    ))
}
