//! Calls of cargo, and the artifacts that it reports.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::shell;

/// An artifact that cargo built, from its JSON messages.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct CargoArtifact {
    /// Absolute path of the package's `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// The target of the package.
    pub target: CargoTarget,
    /// Its files: `.rlib`, `.wasm`, ...
    pub filenames: Vec<PathBuf>,
    /// The program, for targets that can be started.
    pub executable: Option<PathBuf>,
}

/// A target of a package.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct CargoTarget {
    /// `bin`, `bench`, `lib`, ...
    pub kind: Vec<String>,
    /// Its name in the package.
    pub name: String,
}

/// The cargo that started this program, in `folder`, with the environment of a fresh shell.
pub fn host(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    forget_outer_cargo(&mut command);
    command
}

/// Removes the variables that `cargo run` set for this program.
///
/// With these variables, build scripts that watch them run again, so that `cargo test` and
/// `cargo xtask test` would rebuild each other's dependencies.
pub fn forget_outer_cargo(command: &mut Command) {
    for (key, _) in env::vars_os() {
        if is_set_by_cargo_run(&key.to_string_lossy()) {
            command.env_remove(key);
        }
    }
}

fn is_set_by_cargo_run(key: &str) -> bool {
    const PREFIXES: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];
    const NAMES: [&str; 5] = [
        "CARGO",
        "CARGO_CRATE_NAME",
        "CARGO_PRIMARY_PACKAGE",
        "OUT_DIR",
        "RUST_RECURSION_COUNT",
    ];
    NAMES.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Runs a `cargo build` and returns its artifacts. Diagnostics go to the terminal.
///
/// # Errors
/// When cargo cannot be started or the build fails; both with the command line.
pub fn build(command: &mut Command) -> Result<Vec<CargoArtifact>> {
    let typed = shell::line(command);
    command
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start `{typed}`"))?;
    let stdout = child.stdout.take().expect("stdout is piped just above");
    let mut artifacts = Vec::new();
    for line in BufReader::new(stdout).lines() {
        artifacts.extend(artifact(
            &line.with_context(|| format!("reading from `{typed}`"))?,
        ));
    }
    let status = child
        .wait()
        .with_context(|| format!("waiting for `{typed}`"))?;
    if !status.success() {
        bail!("{status}: `{typed}`");
    }
    Ok(artifacts)
}

/// The artifact in one line of cargo's messages, if any.
fn artifact(line: &str) -> Option<CargoArtifact> {
    #[derive(Deserialize)]
    #[serde(tag = "reason", rename_all = "kebab-case")]
    enum Message {
        CompilerArtifact(CargoArtifact),
        #[serde(other)]
        Other,
    }
    match serde_json::from_str(line) {
        Ok(Message::CompilerArtifact(artifact)) => Some(artifact),
        // Build scripts write lines too: not every line is a message.
        Ok(Message::Other) | Err(_) => None,
    }
}

/// The program `name` of the package in `folder`.
///
/// # Errors
/// When the build made no such program.
pub fn program(artifacts: &[CargoArtifact], folder: &Path, name: &str) -> Result<OsString> {
    let manifest = folder.join("Cargo.toml");
    artifacts
        .iter()
        .filter(|artifact| artifact.manifest_path == manifest)
        .filter_map(|artifact| artifact.executable.as_ref())
        .find(|path| path.file_stem().is_some_and(|stem| stem == name))
        .map(|path| path.clone().into_os_string())
        .with_context(|| format!("{} builds no program `{name}`", manifest.display()))
}

/// The bench `name` of the package in `folder`. Cargo chooses the name of its file.
///
/// # Errors
/// When the build made no such bench.
pub fn bench(artifacts: &[CargoArtifact], folder: &Path, name: &str) -> Result<OsString> {
    executable("bench", artifacts, folder, name)
}

/// The integration test `name` of the package in `folder`. Cargo chooses the name of its file.
///
/// # Errors
/// When the build made no such test.
pub fn test(artifacts: &[CargoArtifact], folder: &Path, name: &str) -> Result<OsString> {
    executable("test", artifacts, folder, name)
}

fn executable(
    kind: &str,
    artifacts: &[CargoArtifact],
    folder: &Path,
    name: &str,
) -> Result<OsString> {
    let manifest = folder.join("Cargo.toml");
    let is_it = |target: &CargoTarget| target.name == name && target.kind.iter().any(|k| k == kind);
    let mut found = artifacts
        .iter()
        .filter(|artifact| artifact.manifest_path == manifest && is_it(&artifact.target));
    found
        .find_map(|artifact| artifact.executable.as_ref())
        .map(|path| path.clone().into_os_string())
        .with_context(|| format!("{} builds no {kind} `{name}`", manifest.display()))
}

/// The WebAssembly module of the package with the given `Cargo.toml` (absolute).
pub fn module<'a>(artifacts: &'a [CargoArtifact], manifest: &Path) -> Option<&'a Path> {
    let files = artifacts
        .iter()
        .filter(|artifact| artifact.manifest_path == manifest)
        .flat_map(|artifact| &artifact.filenames);
    files.map(PathBuf::as_path).find(|file| {
        file.extension()
            .is_some_and(|extension| extension == "wasm")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"reason":"compiler-artifact","package_id":"x","manifest_path":"/y/a/Cargo.toml",
        "target":{"kind":["bin"],"name":"a"},"filenames":["/y/target/debug/a"],
        "executable":"/y/target/debug/a","fresh":true}"#;

    #[test]
    fn artifacts_are_read_from_the_messages() {
        let found = artifact(LINE).unwrap();
        assert_eq!(found.filenames, [PathBuf::from("/y/target/debug/a")]);
        assert_eq!(
            artifact(r#"{"reason":"build-finished","success":true}"#),
            None
        );
        assert_eq!(artifact("a line of a build script"), None);
    }

    #[test]
    fn a_program_is_found_by_its_package_and_name() {
        let built = [artifact(LINE).unwrap()];
        assert_eq!(
            program(&built, Path::new("/y/a"), "a").unwrap(),
            "/y/target/debug/a"
        );
        assert!(program(&built, Path::new("/y/b"), "a").is_err());
        assert!(program(&built, Path::new("/y/a"), "b").is_err());
        assert!(bench(&built, Path::new("/y/a"), "a").is_err());
    }

    #[test]
    fn a_bench_is_found_by_its_name_and_not_by_its_file() {
        let line = LINE
            .replace("\"bin\"", "\"bench\"")
            .replace("debug/a", "debug/deps/a-1f");
        let built = [artifact(&line).unwrap()];
        let found = bench(&built, Path::new("/y/a"), "a").unwrap();
        assert_eq!(found, "/y/target/debug/deps/a-1f");
        assert!(program(&built, Path::new("/y/a"), "a").is_err());
    }

    #[test]
    fn only_variables_of_the_outer_cargo_are_removed() {
        for key in ["CARGO", "CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "OUT_DIR"] {
            assert!(is_set_by_cargo_run(key), "{key}");
        }
        for key in [
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_JOBS",
            "CARGO_NET_OFFLINE",
            "PATH",
        ] {
            assert!(!is_set_by_cargo_run(key), "{key}");
        }
    }

    #[test]
    fn a_failing_build_names_its_command() {
        let error = build(Command::new("sh").args(["-c", "exit 1", "--"])).unwrap_err();
        assert!(error.to_string().contains("sh -c 'exit 1'"), "{error}");
    }
}
