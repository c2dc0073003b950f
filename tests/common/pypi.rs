//! The unmodified PyPI clients, `tritonclient[http,grpc]` and `kserve`, schemathesis, and the schemas of
//! Kubernetes, in virtual environments under `target` that are made once.
//!
//! Where Python or PyPI cannot be had a test says so and passes, except in CI (`CI` set),
//! where it fails.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

const CLIENTS: Environment = Environment {
    folder: "venv",
    packages: &["tritonclient[http,grpc]==2.73.0", "kserve==0.21.0"],
};

const SCHEMATHESIS: Environment = Environment {
    folder: "venv-api",
    packages: &["schemathesis==4.32.5"],
};

#[allow(dead_code, reason = "not every test that includes this file has it")]
const KUBERNETES: Environment = Environment {
    folder: "venv-kubernetes",
    packages: &["kubernetes-validate==1.37.0"],
};

/// Requests that schemathesis draws for each operation, in addition to those of its coverage phase.
const DRAWN: &str = "15";

struct Environment {
    folder: &'static str,
    packages: &'static [&'static str],
}

/// Drives a server at these addresses that serves `app` with the clients, and checks their answers.
pub(crate) async fn drive(http: SocketAddr, grpc: SocketAddr, app: &'static str) {
    let driving = tokio::task::spawn_blocking(move || drive_blocking(http, grpc, app));
    if let Err(panicked) = driving.await {
        std::panic::resume_unwind(panicked.into_panic());
    }
}

/// Sends requests that `docs/openapi.yaml` allows or forbids to a server of the app `heart`: no answer is
/// undocumented or a status of 500 or more.
#[allow(dead_code, reason = "not every test that includes this file has it")]
pub(crate) async fn check_api(http: SocketAddr) {
    let checking = tokio::task::spawn_blocking(move || check_api_blocking(http));
    if let Err(panicked) = checking.await {
        std::panic::resume_unwind(panicked.into_panic());
    }
}

/// Checks the files of `packaging/kubernetes` against the schemas of Kubernetes, this program and `facts`, JSON
/// about the configuration.
#[allow(dead_code, reason = "not every test that includes this file has it")]
pub(crate) fn check_manifests(program: &Path, facts: &str) {
    let Some(python) = KUBERNETES.python() else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(python);
    command.arg(root.join("tests/kubernetes/check.py"));
    command.arg(root.join("packaging/kubernetes")).arg(program);
    command.arg(root.join("docs/openapi.yaml")).arg(facts);
    report(&mut command);
}

fn drive_blocking(http: SocketAddr, grpc: SocketAddr, app: &str) {
    let Some(python) = CLIENTS.python() else {
        return;
    };
    let (http, grpc) = (http.to_string(), grpc.to_string());
    run(&python, "clients.py", &[&http, &grpc, app]);
    run(&python, "grpc_clients.py", &[&http, &grpc, app]);
}

fn check_api_blocking(http: SocketAddr) {
    let Some(python) = SCHEMATHESIS.python() else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(python.with_file_name("schemathesis"));
    command.arg("run").arg(root.join("docs/openapi.yaml"));
    // The other paths are the admin port's.
    command.args([
        "--url",
        &format!("http://{http}"),
        "--include-path-regex",
        "^/v2/",
    ]);
    command.args(["--phases", "coverage,fuzzing", "-n", DRAWN, "--seed", "1"]);
    command.args(["--warnings", "off", "--no-color"]);
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,\
                  response_headers_conformance,response_schema_conformance,allow_header_conformance";
    command.args(["--checks", checks, "--continue-on-failure"]);
    // It writes its cases into the folder.
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command.env("PYTHONPATH", root.join("tests/http"));
    command.env("SCHEMATHESIS_HOOKS", "api_hooks");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    report(&mut command);
}

/// Runs a script of `tests/http`.
fn run(python: &Path, script: &str, arguments: &[&str]) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/http");
    let mut command = Command::new(python);
    command.arg(scripts.join(script)).args(arguments);
    report(&mut command);
}

/// Runs a command and prints its output; it must succeed.
fn report(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}\n{complained}");
}

// === impl Environment ===

impl Environment {
    /// Its interpreter; `None` where it cannot be made.
    fn python(&self) -> Option<PathBuf> {
        match self.made() {
            Ok(python) => Some(python),
            Err(reason) if std::env::var_os("CI").is_some() => panic!("in CI, but {reason}"),
            Err(reason) => {
                eprintln!("skipped: {reason}");
                None
            }
        }
    }

    /// Makes it if need be.
    fn made(&self) -> Result<PathBuf, String> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
        let venv = target.join(self.folder);
        let python = venv.join("bin/python");
        // Written last, so an interrupted installation is begun again.
        let stamp = venv.join("switchyard-clients.txt");
        let wanted = self.packages.join("\n");
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(python);
        }
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        succeed(Command::new(&python).args(pip).args(self.packages))?;
        std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
        Ok(python)
    }
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
