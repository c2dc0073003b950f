//! From `policy new` to answers, in every language whose tools can be had.
//!
//! C is tested if its compiler is installed. Rust, Python and JavaScript take packages from crates.io, PyPI
//! and npm, and minutes, so they are tested if `SWITCHYARD_KIT_FETCH` is set, together with the
//! equality of all languages' decisions. A skipped test prints the reason.

#![allow(clippy::unwrap_used)]

#[path = "cli/binary.rs"]
#[expect(dead_code, reason = "shared with the tests that need more of it")]
mod binary;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
        // Reuses the build of the shipped policies.
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

    /// It decides as the Rust one does, in every window of a simulated run.
    fn agrees(&self) {
        if !fetches("crates for the Rust scaffold") {
            return;
        }
        let (record, windows) = recording();
        let file = self.component();
        let policy = file.to_str().unwrap();
        let record = record.to_str().unwrap();
        let found = json(&switchyard(&[
            "replay", record, "--policy", policy, "--json",
        ]));
        assert_eq!(found["windows"].as_u64(), Some(*windows), "{found:#}");
        assert_eq!(found["identical"].as_u64(), Some(*windows), "{found:#}");
    }
}

/// The Rust scaffold, built once.
fn rust() -> &'static Kit {
    static KIT: OnceLock<Kit> = OnceLock::new();
    KIT.get_or_init(|| Kit::new("rust", &[]))
}

/// A simulated run of the Rust scaffold in which every request was answered, and its windows.
fn recording() -> &'static (PathBuf, u64) {
    static RECORD: OnceLock<(PathBuf, u64)> = OnceLock::new();
    RECORD.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (profile, record) = (folder.join("kit-profile.json"), folder.join("kit.rec"));
        let (profile, record_path) = (profile.to_str().unwrap(), record.to_str().unwrap());
        let quick = ["--seconds", "1", "--accuracy", "0"];
        succeeds(&switchyard(
            &[&["profile", "--out", profile][..], &quick].concat(),
        ));
        let _ = fs::remove_file(record_path);
        let file = rust().component();
        let ran = switchyard(&[
            "simulate",
            "--policy",
            file.to_str().unwrap(),
            "--profile",
            profile,
            "--workload",
            "gamma:300,0.5",
            "--seconds",
            "2",
            "--record",
            record_path,
            "--json",
            "-",
        ]);
        let simulated = json(&ran);
        let found = json(&switchyard(&[
            "replay",
            record_path,
            "--policy",
            file.to_str().unwrap(),
            "--json",
        ]));
        let windows = found["windows"].as_u64().unwrap();
        assert!(windows > 100, "{simulated:#}");
        assert_eq!(found["identical"].as_u64(), Some(windows), "{found:#}");
        (record, windows)
    })
}

/// Whether to run tests that fetch packages.
fn fetches(what: &str) -> bool {
    let asked = std::env::var_os("SWITCHYARD_KIT_FETCH").is_some();
    if !asked {
        eprintln!("skipped: fetching {what} takes SWITCHYARD_KIT_FETCH");
    }
    asked
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
fn rust_from_nothing_to_answers() {
    if !fetches("crates for the Rust scaffold") {
        return;
    }
    rust().asks_for_no_more_than_the_contract();
    rust().passes();
    let windows = recording().1;
    assert!(windows > 0);
}

#[test]
fn c_from_nothing_to_the_same_answers() {
    if has_c() {
        let kit = Kit::new("c", &[]);
        kit.asks_for_no_more_than_the_contract();
        kit.passes();
        kit.agrees();
    }
}

#[test]
fn output_of_a_c_policy_goes_to_the_log_of_an_empty_world() {
    if !has_c() {
        return;
    }
    let kit = Kit::new("c", &[]);
    let project = kit.folder.path().join(Kit::NAME);
    let source = fs::read_to_string(project.join("policy.c")).unwrap();
    let entry = "  (void)err;\n  batch_t *batches";
    assert!(source.contains(entry));
    let printing = source.replace(
        entry,
        "  (void)err;\n  printf(\"%zu wait\\n\", window->requests.id.len);\n  fflush(stdout);\n  \
         batch_t *batches",
    );
    fs::write(
        project.join("policy.c"),
        format!("#include <stdio.h>\n{printing}"),
    )
    .unwrap();
    let dir = project.to_str().unwrap();
    let report = json(&switchyard(&["policy", "build", dir, "--json"]));
    let imports = report["imports"].as_array().unwrap();
    assert!(
        imports
            .iter()
            .any(|name| name.as_str().unwrap().starts_with("wasi:cli/stdout@0.2")),
        "{report:#}"
    );
    let kit = Kit { report, ..kit };
    kit.passes();
    kit.agrees();
}

#[test]
fn python_from_nothing_to_the_same_answers() {
    if fetches("componentize-py") {
        let kit = Kit::new("python", &[]);
        kit.asks_for_no_more_than_the_contract();
        kit.passes();
        kit.agrees();
        let kit = Kit::new("python", &["--wasi"]);
        kit.passes();
        kit.agrees();
    }
}

#[test]
fn javascript_from_nothing_to_a_passing_check() {
    // Not replayed: the budgets of a replay are the live ones, which it passes on a busy machine.
    if fetches("componentize-js") {
        let kit = Kit::new("js", &[]);
        kit.asks_for_no_more_than_the_contract();
        kit.passes();
        Kit::new("js", &["--wasi"]).passes();
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
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("Cargo.toml"), "{}", ran.stderr);
}
