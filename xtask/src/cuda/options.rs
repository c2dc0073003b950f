//! Options of every CUDA build.

use std::process::Command;

use clap::Args;
use switchyard_kit::cargo;

use super::toolkit::Toolkit;
use crate::workspace::Workspace;

/// Options of every CUDA build.
#[derive(Args)]
pub(crate) struct CudaOptions {
    /// Cargo profile; `dev` compiles sooner and serves slower
    #[arg(long, default_value = "release", global = true)]
    profile: String,
    /// Compute capability of the GPU, without the point: 90 is Hopper, 89 Ada, 80 Ampere
    #[arg(long, default_value_t = 90, global = true, value_parser = clap::value_parser!(u32).range(50..=999))]
    compute_cap: u32,
}

// === impl CudaOptions ===

impl CudaOptions {
    /// A cargo command with the feature, the toolkit and the profile.
    pub(super) fn command(&self, workspace: &Workspace, toolkit: &Toolkit, verb: &str) -> Command {
        let mut command = cargo::host(&workspace.root);
        command.args([verb, "--profile", &self.profile]);
        command.args(["--features", "cuda,nvml"]);
        toolkit.apply(&mut command, self.compute_cap);
        command
    }
}
