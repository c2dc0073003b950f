//! The folder for a machine with a GPU: programs, policies, models, scripts.
//!
//! Such a machine may have no cargo and no network, and take a folder of limited size: programs are
//! stripped and compressed, and the libraries of CUDA are omitted, which a machine with a GPU has.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use switchyard_kit::{cargo, shell};

use super::options::CudaOptions;
use super::toolkit::Toolkit;
use crate::files::copy_folder;
use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// Scripts and data that are tracked.
const SCRIPTS: &str = "tests/gpu";

/// Where the programs are, compressed.
const PROGRAMS: &str = "programs.tar.xz";

/// The dictionary is longer than one program, so that the second one repeats parts of the first.
const COMPRESS: &str = "xz --lzma2=preset=6,dict=256MiB";

/// Builds programs and policies and fills `target/cuda/pack`. Returns the path of the script.
///
/// # Errors
/// A build fails, or the folder cannot be written.
pub(super) fn make(
    workspace: &Workspace,
    toolkit: &Toolkit,
    options: &CudaOptions,
) -> Result<PathBuf> {
    let pack = workspace.target("cuda/pack");
    if pack.exists() {
        fs::remove_dir_all(&pack).with_context(|| pack.display().to_string())?;
    }
    fs::create_dir_all(&pack).with_context(|| pack.display().to_string())?;
    plugins::build(workspace, Guests::Leave)?;
    // Both in one call: two calls select different features of shared packages, and NVIDIA's compiler
    // would run twice, for minutes.
    let mut build = options.command(workspace, toolkit, "build");
    build.args(["--package", "switchyard", "--bin", "switchyard"]);
    build.args(["--package", "switchyard-executor", "--test", "gpu"]);
    eprintln!("== {}", shell::line(&build));
    let built = cargo::build(&mut build)?;
    let package = |name: &str| workspace.root.join("host").join(name);
    let server = cargo::program(&built, &package("cli"), "switchyard")?;
    let tests = cargo::test(&built, &package("executor"), "gpu")?;
    put(&[("switchyard", &server), ("gpu", &tests)], &pack)?;

    copy_folder(&workspace.root.join(SCRIPTS), &pack)?;
    copy_folder(&workspace.root.join("models/zoo"), &pack.join("zoo"))?;
    copy_folder(&workspace.target("policies"), &pack.join("policies"))?;
    Ok(pack.join("run.sh"))
}

/// Programs by their names, stripped and compressed together: most of each is the same kernels.
fn put(programs: &[(&str, &OsString)], pack: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--file").arg(pack.join(PROGRAMS));
    tar.arg(format!("--use-compress-program={COMPRESS}"));
    tar.arg("--remove-files").arg("--directory").arg(pack);
    for (name, program) in programs {
        let onto = pack.join(name);
        fs::copy(program, &onto).with_context(|| onto.display().to_string())?;
        shell::run(Command::new("strip").arg(&onto))?;
        tar.arg(name);
    }
    shell::run(&mut tar)
}
