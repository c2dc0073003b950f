//! Runs the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Exit code and output of a run.
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// `switchyard` at the root of the repository, before its arguments.
pub(super) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    command.current_dir(root());
    // Not the user's: the tests compile each policy once.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    command.env("XDG_CACHE_HOME", cache);
    for variable in [
        "COLUMNS",
        "RUST_LOG",
        "RAYON_NUM_THREADS",
        "CANDLE_NUM_THREADS",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Runs `switchyard` at the root of the repository.
pub(super) fn switchyard(arguments: &[&str]) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = command().args(arguments).output().unwrap();
    Ran {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// A shipped policy.
pub(super) fn policy(name: &str) -> PathBuf {
    component("SWITCHYARD_POLICIES", "target/policies", name)
}

/// A component that misbehaves.
pub(super) fn guest(name: &str) -> PathBuf {
    component("SWITCHYARD_GUESTS", "target/policies-test", name)
}

/// Where the guests are.
pub(super) fn guests() -> PathBuf {
    folder("SWITCHYARD_GUESTS", "target/policies-test")
}

fn component(variable: &str, default: &str, name: &str) -> PathBuf {
    let file = folder(variable, default).join(format!("{name}.wasm"));
    assert!(
        file.is_file(),
        "{} is missing: run `cargo xtask plugins --with-guests` first",
        file.display()
    );
    file
}

fn folder(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| root().join(default), PathBuf::from)
}
