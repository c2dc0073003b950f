//! A scheduler over real Triton servers and remote workers (`live/tritons.rs`), then every other test of
//! remote workers, measurements included. Triton for processors comes from PyPI (`nvidia-pytriton`), into
//! an environment below `target`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use switchyard_kit::{cargo, shell};

use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// As in `tests/peers/README.md`.
const PACKAGES: [&str; 3] = ["nvidia-pytriton==0.7.0", "numpy", "safetensors"];

/// Tests of the binary `live`.
const TESTS: [&str; 3] = ["tritons::", "remote::", "remote_tls::"];

/// Runs the tests.
///
/// # Errors
/// Triton cannot be installed, a build fails, or a test does.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let python = python(workspace)?;
    plugins::build(workspace, Guests::Include)?;
    let mut test = cargo::host(&workspace.root);
    test.args(["test", "--workspace", "--test", "live", "--"]);
    // One at a time: they measure times.
    test.args(["--include-ignored", "--nocapture", "--test-threads=1"]);
    test.args(TESTS);
    test.env("SWITCHYARD_TRITON", python);
    test.env("SWITCHYARD_POLICIES", plugins::policies(workspace));
    test.env("SWITCHYARD_GUESTS", plugins::guests(workspace));
    shell::run(&mut test)
}

/// The Python that has Triton.
fn python(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target("triton");
    let python = folder.join("bin/python");
    let mut import = Command::new(&python);
    import.args(["-c", "import pytriton.triton, numpy"]);
    if import.output().is_ok_and(|output| output.status.success()) {
        return Ok(python);
    }
    let mut make = Command::new("python3");
    shell::run(make.args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet"]);
    if shell::run(install.args(PACKAGES)).is_err() {
        bail!(
            "{}: pip cannot install {}: it needs Python 3.8 to 3.12 as `python3` and Linux on x86-64 or arm64",
            folder.display(),
            PACKAGES[0]
        );
    }
    Ok(python)
}
