//! Programs for NVIDIA's cards: built here, run where there is a card.
//!
//! - [`toolkit`]: CUDA's compiler and libraries, the machine's own or brought into `target/cuda`
//! - [`pack`]: a folder with everything that a machine with a card needs, which may have neither
//!   cargo nor a network: `bash target/cuda/pack/run.sh`
//!
//! `test` and `bench` pack and run that same script on this machine, so that there is one way to run
//! them. docs/gpu.md is the page for people.

mod pack;
mod toolkit;

use std::process::Command;

use anyhow::Result;
use clap::{Args, Subcommand};
use switchyard_kit::{cargo, shell};

use self::toolkit::Toolkit;
use crate::workspace::Workspace;

/// Options of `cuda`.
#[derive(Args)]
pub(crate) struct CudaArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Cargo profile; `dev` compiles sooner and serves slower
    #[arg(long, default_value = "release", global = true)]
    profile: String,
    /// Compute capability of the card, without the point: 90 is Hopper, 89 Ada, 80 Ampere
    #[arg(long, default_value_t = 90, global = true, value_parser = clap::value_parser!(u32).range(50..=999))]
    compute_cap: u32,
}

#[derive(Subcommand)]
enum Action {
    /// Bring the toolkit where the machine has none, and build `switchyard` for cards (the default)
    Build,
    /// Build, and put everything a machine with a card needs into target/cuda/pack
    Pack,
    /// Pack, and run the tests that need a card on this machine
    Test,
    /// Pack, and run tests and measurements on this machine; results go to target/cuda/results
    Bench,
}

/// Builds for cards, packs, tests or measures.
///
/// # Errors
/// The toolkit cannot be brought, something does not build, or what was run fails: also when there
/// is no card.
pub(crate) fn run(workspace: &Workspace, args: &CudaArgs) -> Result<()> {
    let toolkit = Toolkit::ready(workspace)?;
    let action = args.action.as_ref().unwrap_or(&Action::Build);
    if let Action::Build = action {
        let mut build = command(workspace, &toolkit, args, "build");
        build.args(["--package", "switchyard", "--bin", "switchyard"]);
        eprintln!("== {}", shell::line(&build));
        let artifacts = cargo::build(&mut build)?;
        let folder = workspace.root.join("host/cli");
        let program = cargo::program(&artifacts, &folder, "switchyard")?;
        println!("{}", program.to_string_lossy());
        println!("run it with LD_LIBRARY_PATH={}", toolkit.libraries());
        return Ok(());
    }
    let script = pack::make(workspace, &toolkit, args)?;
    let only = match action {
        Action::Test => Some("tests"),
        Action::Bench => None,
        Action::Build | Action::Pack => {
            println!("{}", script.display());
            return Ok(());
        }
    };
    let mut run = Command::new("bash");
    run.arg(&script).current_dir(&workspace.root);
    run.env("CARDS_LIB", toolkit.home.join("lib"));
    run.arg(workspace.target("cuda/results"));
    run.args(only);
    cargo::forget_outer_cargo(&mut run);
    shell::run(&mut run)
}

/// A cargo command with the feature, the toolkit and the profile.
fn command(workspace: &Workspace, toolkit: &Toolkit, args: &CudaArgs, verb: &str) -> Command {
    let mut command = cargo::host(&workspace.root);
    command.args([verb, "--profile", &args.profile]);
    command.args(["--features", "cuda,nvml"]);
    toolkit.apply(&mut command, args.compute_cap);
    command
}
