//! The wheel: module, program, policies and models in one file.
//!
//! maturin builds the module and packs it. The other files come from a folder that lays them out as an
//! installation has them: pip puts `scripts` into the `bin` of the environment and `data` next to it, so
//! that the program finds `../share/switchyard`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use switchyard_kit::{cargo, shell};

use super::{contents, environment, smoke};
use crate::files::{anew, copy_folder, file};
use crate::package::glibc::newest_glibc;
use crate::package::share;
use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// Options of `wheel`.
#[derive(Args)]
pub(crate) struct WheelArgs {
    /// Cargo profile of module and program; `dev` compiles sooner and simulates slower
    #[arg(long, default_value = "release")]
    profile: String,
    /// Pack this program instead of building one
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Measure and try this wheel of the program instead of building one
    #[arg(long, value_name = "PATH", requires = "binary")]
    wheel: Option<PathBuf>,
}

/// Builds, packs, measures and tries the wheel.
///
/// # Errors
/// A build fails, the wheel is too large, or its first commands fail.
pub(crate) fn run(workspace: &Workspace, args: &WheelArgs) -> Result<()> {
    let python = environment::python(workspace)?;
    if args.wheel.is_none() {
        plugins::build(workspace, Guests::Leave)?;
    }
    let program = match &args.binary {
        Some(program) => program.clone(),
        None => program(workspace, &args.profile)?,
    };
    let project = project(workspace, &program)?;
    let wheel = match &args.wheel {
        Some(wheel) => std::path::absolute(wheel)?,
        None => pack(workspace, &python, &project, &args.profile)?,
    };
    println!("{}", workspace.relative(&wheel));
    check_glibc(&wheel, &program)?;
    contents::check(&python, &wheel, &project)?;
    smoke::check(workspace, &wheel)
}

fn program(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let mut build = cargo::host(&workspace.root);
    build.args(["build", "--workspace", "--bin", "switchyard", "--profile"]);
    let artifacts = cargo::build(build.arg(profile))?;
    let program = cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")?;
    Ok(program.into())
}

/// A copy of the project with the files to be installed, `target/wheel/project`.
fn project(workspace: &Workspace, program: &Path) -> Result<PathBuf> {
    let project = workspace.target("wheel/project");
    anew(&project)?;
    let sources = workspace.root.join("python");
    copy_folder(&sources.join("switchyard"), &project.join("switchyard"))?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        file(&workspace.root.join(licence), &project.join(licence))?;
    }
    let script = project.join("data/scripts/switchyard");
    file(program, &script)?;
    shell::run(Command::new("strip").arg(&script))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    share::fill(workspace, &project.join("data/data/share/switchyard"))?;
    // The table of maturin is the last one.
    let text = fs::read_to_string(sources.join("pyproject.toml"))?;
    let manifest = sources.join("Cargo.toml");
    let more = format!("data = \"data\"\nmanifest-path = {manifest:?}\n");
    fs::write(project.join("pyproject.toml"), text + &more)?;
    Ok(project)
}

fn pack(workspace: &Workspace, python: &Path, project: &Path, profile: &str) -> Result<PathBuf> {
    let out = workspace.target("wheel/out");
    anew(&out)?;
    let mut maturin = Command::new(python.with_file_name("maturin"));
    cargo::forget_outer_cargo(&mut maturin);
    maturin
        .current_dir(project)
        .args(["build", "--locked", "--profile", profile, "--out"])
        .arg(&out)
        .arg("--interpreter")
        .arg(python);
    eprintln!("   {}", shell::line(&maturin));
    shell::run(&mut maturin)?;
    let mut wheels = fs::read_dir(&out)?;
    let wheel = wheels.next().context("maturin made no wheel")??;
    Ok(wheel.path())
}

/// maturin looks at the module only: its tag must also cover the program.
fn check_glibc(wheel: &Path, program: &Path) -> Result<()> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let allowed = tagged_glibc(&name).context("the wheel's name has no tag `manylinux_2_X`")?;
    let bytes = fs::read(program).with_context(|| program.display().to_string())?;
    let needed = newest_glibc(&bytes).context("the program names no version of glibc")?;
    ensure!(
        needed <= allowed,
        "the program needs glibc 2.{needed}, the wheel says 2.{allowed}; build both on one machine"
    );
    Ok(())
}

/// X of `manylinux_2_X` in the name of a wheel.
fn tagged_glibc(name: &str) -> Option<u32> {
    let (_, rest) = name.rsplit_once("manylinux_2_")?;
    rest.split('_').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_a_wheel_has_its_version_of_glibc() {
        let name = "switchyard-0.1.0-cp310-abi3-manylinux_2_35_x86_64.whl";
        assert_eq!(tagged_glibc(name), Some(35));
        assert_eq!(
            tagged_glibc("switchyard-0.1.0-cp310-abi3-linux_x86_64.whl"),
            None
        );
    }
}
