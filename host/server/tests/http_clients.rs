//! The unmodified PyPI clients, `tritonclient[http]` and `kserve`, against the
//! HTTP port.
//!
//! They live in a virtual environment under `target`, made once. Where Python
//! or PyPI cannot be had the test says so and passes, except in CI (`CI` set),
//! where it fails.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "http/bench.rs"]
#[expect(dead_code, reason = "shared with the tests that need more of it")]
mod bench;

const PACKAGES: [&str; 2] = ["tritonclient[http]==2.73.0", "kserve==0.21.0"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_from_pypi_are_content() {
    let python = match tokio::task::spawn_blocking(python_with_clients)
        .await
        .unwrap()
    {
        Ok(python) => python,
        Err(reason) if std::env::var_os("CI").is_some() => panic!("in CI, but {reason}"),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let server = bench::Server::with_defaults().await;
    let script = repository().join("tests/http/clients.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg(server.address.to_string())
        .arg("linear");
    let running = tokio::task::spawn_blocking(move || command.output());
    let output = running.await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}\n{complained}");
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter of an environment that has the clients, made if need be.
fn python_with_clients() -> Result<PathBuf, String> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../venv");
    let python = venv.join("bin/python");
    // Written last, so an interrupted installation is begun again.
    let stamp = venv.join("switchyard-clients.txt");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    succeed(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(PACKAGES),
    )?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?} did not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed: {}", complaint.trim()))
}
