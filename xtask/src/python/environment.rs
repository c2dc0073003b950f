//! A virtual environment with the packages that tests and wheels need.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use switchyard_kit::shell;

use crate::workspace::Workspace;

/// As pip takes them.
const PACKAGES: [&str; 10] = [
    "maturin==1.16.0",
    "componentize-py==0.25.1",
    "gymnasium==1.4.0",
    "matplotlib==3.11.2",
    "numpy==2.4.6",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    // Run the notebooks.
    "ipykernel==7.4.0",
    "nbclient==0.11.0",
    "nbformat==5.11.1",
];

/// The interpreter of `target/venv-python`, which is made once.
///
/// # Errors
/// Python or PyPI cannot be had.
pub(super) fn python(workspace: &Workspace) -> Result<PathBuf> {
    let venv = workspace.target("venv-python");
    // The stamp is written last: an interrupted installation begins again.
    let (python, stamp) = (venv.join("bin/python"), venv.join("packages.txt"));
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    shell::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))
        .context("needs Python 3.11 or later with venv")?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet"]);
    install.arg("--disable-pip-version-check").args(PACKAGES);
    shell::run(&mut install).context("needs PyPI, and 700 MB in target/venv-python")?;
    fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())?;
    Ok(python)
}
