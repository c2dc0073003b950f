//! The wheel in an empty environment, from an empty folder, without Rust in `PATH`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use switchyard_kit::shell;

use crate::files::anew;
use crate::workspace::Workspace;

const SMOKE: &str = include_str!("smoke.py");

/// Installs the wheel, simulates from Python and from the command, and runs the demo.
///
/// # Errors
/// The command that fails.
pub(super) fn check(workspace: &Workspace, wheel: &Path) -> Result<()> {
    let folder = workspace.target("wheel/smoke");
    anew(&folder)?;
    let (home, venv) = (folder.join("home"), folder.join("venv"));
    fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let bin = venv.join("bin");
    let mut install = Command::new(bin.join("python"));
    install.args(["-m", "pip", "install", "--quiet"]);
    shell::run(install.arg("--disable-pip-version-check").arg(wheel))?;
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let commands: [(&str, &[&str]); 3] = [
        ("python", &["-c", SMOKE]),
        ("switchyard", &["serve", "--check"]),
        ("switchyard", &["demo", "--quick"]),
    ];
    for (program, arguments) in commands {
        let began = Instant::now();
        let mut command = Command::new(bin.join(program));
        command.args(arguments).current_dir(&home);
        command.env_clear().env("PATH", &path).env("HOME", &home);
        shell::run(&mut command)?;
        let seconds = began.elapsed().as_secs_f64();
        println!("{program}: passed in {seconds:.1} s");
    }
    Ok(())
}
