//! Programs for NVIDIA GPUs: built here, run on a machine with a GPU.
//!
//! - [`toolkit`]: CUDA's compiler and libraries, the machine's own or brought into `target/cuda`
//! - [`options`]: the profile and the compute capability
//! - [`pack`]: a folder for a machine with a GPU, which may have neither cargo nor a network: `bash
//!   target/cuda/pack/run.sh`
//!
//! `test` and `bench` pack and run the same script on this machine. The page is docs/gpu.md.

mod options;
mod pack;
mod toolkit;

use std::process::Command;

use anyhow::Result;
use clap::{Args, Subcommand};
use switchyard_kit::{cargo, shell};

use self::options::CudaOptions;
use self::toolkit::Toolkit;
use crate::workspace::Workspace;

/// Options of `cuda`.
#[derive(Args)]
pub(crate) struct CudaArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    options: CudaOptions,
}

#[derive(Subcommand)]
enum Action {
    /// Install the toolkit if the machine has none, and build `switchyard` for GPUs (the default)
    Build,
    /// Build, and put programs, policies, models and scripts into target/cuda/pack
    Pack,
    /// Pack, and run the tests that need a GPU on this machine
    Test,
    /// Pack, and run tests and measurements on this machine; results go to target/cuda/results
    Bench,
}

/// Builds for GPUs, packs, tests or measures.
///
/// # Errors
/// The toolkit cannot be installed, a build fails, or the script fails, also for lack of a GPU.
pub(crate) fn run(workspace: &Workspace, args: &CudaArgs) -> Result<()> {
    let toolkit = Toolkit::ready(workspace)?;
    let action = args.action.as_ref().unwrap_or(&Action::Build);
    if let Action::Build = action {
        let mut build = args.options.command(workspace, &toolkit, "build");
        build.args(["--package", "switchyard", "--bin", "switchyard"]);
        eprintln!("== {}", shell::line(&build));
        let artifacts = cargo::build(&mut build)?;
        let folder = workspace.root.join("host/cli");
        let program = cargo::program(&artifacts, &folder, "switchyard")?;
        println!("{}", program.to_string_lossy());
        println!("run it with LD_LIBRARY_PATH={}", toolkit.libraries());
        return Ok(());
    }
    let script = pack::make(workspace, &toolkit, &args.options)?;
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
    run.env("GPU_LIB", toolkit.home.join("lib"));
    run.arg(workspace.target("cuda/results"));
    run.args(only);
    cargo::forget_outer_cargo(&mut run);
    shell::run(&mut run)
}
