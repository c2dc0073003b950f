//! `switchyard policy new`: a project to begin with.

use std::path::PathBuf;

use clap::Args;
use switchyard_kit::{Language, scaffold};

use crate::commands::Failure;

/// Make a new policy's project: earliest deadline first, to be changed into something better
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard policy new my-policy
  switchyard policy new my-policy --lang python --dir ~/policies/my-policy

The project needs no repository: it carries the contract, and in Rust the SDK. Its README.md says
what is in it and what to do next.

Exit codes: 0 made, 2 the name is no name for a policy, or the folder holds something.")]
pub(super) struct NewArgs {
    /// Name of the policy, as in metrics: lower-case letters, digits and hyphens
    name: String,
    /// What it is written in: rust, python, js or c
    #[arg(long, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    lang: Language,
    /// Where the project goes; else a folder of its name, here
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Makes the project and says what to do with it.
pub(super) fn run(args: &NewArgs) -> Result<(), Failure> {
    let folder = args.dir.clone().unwrap_or_else(|| args.name.clone().into());
    let wrong = |error| Failure::input(format!("{error:#}"));
    let files = scaffold::create(&folder, &args.name, args.lang).map_err(wrong)?;
    let (dir, name) = (folder.display(), &args.name);
    println!(
        "{dir}: a policy in {}, {} files. Next:",
        args.lang,
        files.len()
    );
    println!("  switchyard policy build {dir}");
    // An interpreter takes longer than a pool allows by default when very much is waiting.
    let budget = match args.lang {
        Language::Rust | Language::C => "",
        Language::Python | Language::JavaScript => " --budget-ms 50",
    };
    println!("  switchyard policy check {dir}/build/{name}.wasm{budget}");
    Ok(())
}
