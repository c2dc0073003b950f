//! The unmodified PyPI clients, `tritonclient[http,grpc]` and `kserve`, in a virtual environment
//! under `target` that is made once.
//!
//! Where Python or PyPI cannot be had a test says so and passes, except in CI (`CI` set),
//! where it fails.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: [&str; 2] = ["tritonclient[http,grpc]==2.73.0", "kserve==0.21.0"];

/// Drives a server at these addresses that serves `app` with the clients, and checks their answers.
pub(crate) async fn drive(http: SocketAddr, grpc: SocketAddr, app: &'static str) {
    let driving = tokio::task::spawn_blocking(move || drive_blocking(http, grpc, app));
    if let Err(panicked) = driving.await {
        std::panic::resume_unwind(panicked.into_panic());
    }
}

fn drive_blocking(http: SocketAddr, grpc: SocketAddr, app: &str) {
    let python = match python_with_clients() {
        Ok(python) => python,
        Err(reason) if std::env::var_os("CI").is_some() => panic!("in CI, but {reason}"),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let (http, grpc) = (http.to_string(), grpc.to_string());
    run(&python, "clients.py", &[&http, &grpc, app]);
    run(&python, "grpc_clients.py", &[&http, &grpc, app]);
}

/// Runs a script of `tests/http`.
fn run(python: &Path, script: &str, arguments: &[&str]) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/http");
    let mut command = Command::new(python);
    command.arg(scripts.join(script)).args(arguments);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}\n{complained}");
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
