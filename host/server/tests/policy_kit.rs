//! From `policy new` to a policy that passes, where a compiler can be had.

#![allow(clippy::unwrap_used)]

#[path = "cli/binary.rs"]
#[expect(dead_code, reason = "shared with the tests that need more of it")]
mod binary;

use std::fs;
use std::path::{Path, PathBuf};

use binary::{Ran, command, switchyard};
use serde_json::Value;
use tempfile::TempDir;

/// More than any of them needs, on a machine that has other things to do.
const PATIENT: [&str; 2] = ["--budget-ms", "2000"];

/// A project that was made and built.
struct Kit {
    folder: TempDir,
    report: Value,
}

fn succeeds(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}

fn json(ran: &Ran) -> Value {
    succeeds(ran);
    serde_json::from_str(&ran.stdout).unwrap()
}

// === impl Kit ===

impl Kit {
    const NAME: &str = "first-try";

    fn new(language: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join(Self::NAME);
        let dir = project.to_str().unwrap();
        let new = [
            "policy",
            "new",
            Self::NAME,
            "--lang",
            language,
            "--dir",
            dir,
        ];
        succeeds(&switchyard(&new));
        let mut build = command();
        // What the shipped policies were built from is not built again.
        let target = binary::root().join("target/wasm");
        build.env("CARGO_TARGET_DIR", target);
        build.args(["policy", "build", dir, "--json"]).args(more);
        let output = build.output().unwrap();
        let report = json(&Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        });
        Self { folder, report }
    }

    fn component(&self) -> PathBuf {
        let file = format!("{0}/build/{0}.wasm", Self::NAME);
        let file = self.folder.path().join(file).canonicalize().unwrap();
        assert_eq!(Path::new(self.report["file"].as_str().unwrap()), file);
        file
    }

    /// It passes `policy check`, under its own name.
    fn passes(&self) {
        let file = self.component();
        let mut arguments = vec!["policy", "check", file.to_str().unwrap(), "--json"];
        arguments.extend(PATIENT);
        let checked = json(&switchyard(&arguments));
        assert_eq!(checked["passed"], true);
        assert_eq!(checked["about"]["name"], Self::NAME);
    }

    /// It asks for nothing that the contract does not have.
    fn asks_for_no_more_than_the_contract(&self) {
        let imports = self.report["imports"].as_array().unwrap();
        for import in imports {
            let import = import.as_str().unwrap();
            assert!(import.starts_with("switchyard:policy/"), "{import}");
        }
    }
}

/// Whether there are a clang and a C library for WebAssembly.
fn has_c() -> bool {
    if std::env::var_os("WASI_SDK_PATH").is_some() {
        return true;
    }
    let library = ["/usr/include/wasm32-wasi", "/usr/wasm32-wasi"];
    let has_library = library.iter().any(|folder| Path::new(folder).is_dir());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&path).flat_map(|folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    });
    let is_clang = |name: &String| {
        let version = name.strip_prefix("clang-");
        name == "clang" || version.is_some_and(|v| v.bytes().all(|b| b.is_ascii_digit()))
    };
    let found = has_library && programs.any(|name| is_clang(&name));
    if !found {
        eprintln!("skipped: there is no clang with a C library for WebAssembly (wasi-libc)");
    }
    found
}

#[test]
fn c_from_nothing_to_a_policy_that_passes() {
    if has_c() {
        let kit = Kit::new("c", &[]);
        kit.asks_for_no_more_than_the_contract();
        kit.passes();
    }
}

#[test]
fn a_folder_that_holds_something_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let dir = folder.path().to_str().unwrap();
    let ran = switchyard(&["policy", "new", "a-policy", "--dir", dir]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("is not empty"), "{}", ran.stderr);
    let ran = switchyard(&["policy", "new", "A Policy"]);
    assert_eq!(ran.code, Some(2));
    let ran = switchyard(&["policy", "build", dir]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("Cargo.toml"), "{}", ran.stderr);
}
