//! The Python module: its tests, and the wheel.
//!
//! - `environment`: a virtual environment in `target` with the packages that both need
//! - `package`: the module with the files of its package, as Python imports it
//! - `wheel`: module, program, policies and models in one file, built by maturin; `contents`: its files and
//!   sizes; `smoke`: installed and tried in an empty environment

mod contents;
mod environment;
mod package;
mod smoke;
mod wheel;

use std::process::Command;

use anyhow::Result;
use switchyard_kit::shell;

pub(crate) use self::wheel::{WheelArgs, run};
use crate::workspace::Workspace;

/// Tests the module against the program. A reason if Python or PyPI cannot be had.
///
/// # Errors
/// A build or a test fails; in CI, also a missing Python.
pub(crate) fn test(workspace: &Workspace) -> Result<Option<String>> {
    let python = match environment::python(workspace) {
        Ok(python) => python,
        Err(error) if std::env::var_os("CI").is_some() => return Err(error),
        Err(error) => return Ok(Some(format!("{error:#}"))),
    };
    let built = package::make(workspace)?;
    let mut tests = Command::new(python);
    tests
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(workspace.root.join("python/tests"))
        .env("PYTHONPATH", built.packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SWITCHYARD_PROGRAM", built.program);
    eprintln!("   {}", shell::line(&tests));
    shell::run(&mut tests)?;
    Ok(None)
}
