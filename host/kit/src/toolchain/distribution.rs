//! Debian's packages: a second compiler, with the source of the standard library.
//!
//! They have no standard library for wasm, so cargo's `build-std` compiles it. That is an unstable
//! option. `RUSTC_BOOTSTRAP` allows it, for policies only.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::newest_version;
use crate::{cargo, shell};

/// In Debian 12 and its updates, for amd64 and arm64.
const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-19"];

/// Variables that point to the toolchain that runs this program.
const ACTIVE_TOOLCHAIN: [&str; 7] = [
    "RUSTUP_TOOLCHAIN",
    "RUSTC",
    "RUSTDOC",
    "CARGO_BUILD_RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "LD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
];

/// A compiler, its cargo and a linker, installed by the distribution.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Distribution {
    cargo: PathBuf,
    rustc: PathBuf,
    linker: PathBuf,
}

/// The installed packages; installs them if they are missing.
///
/// # Errors
/// The part that is missing, and why it cannot be installed.
pub(super) fn find_or_install() -> Result<Distribution> {
    let missing = match Distribution::find(Path::new("/")) {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    install().with_context(|| format!("{missing:#}"))?;
    Distribution::find(Path::new("/"))
}

// === impl Distribution ===

impl Distribution {
    /// Searches below `root`, which is `/` except in tests.
    fn find(root: &Path) -> Result<Self> {
        let usr = root.join("usr");
        let (cargo, rustc) = (usr.join("bin/cargo"), usr.join("bin/rustc"));
        for program in [&cargo, &rustc] {
            if !program.exists() {
                bail!("{} is not installed", program.display());
            }
        }
        let version = shell::answer(Command::new(&rustc).arg("--version")).unwrap_or_default();
        let oldest = env!("CARGO_PKG_RUST_VERSION");
        if release(&version) < release(oldest) {
            bail!("{} is older than {oldest}", rustc.display());
        }
        let source = usr.join("lib/rustlib/src/rust/library/Cargo.lock");
        if !source.exists() {
            bail!(
                "the standard library's source is not installed ({})",
                source.display()
            );
        }
        let linker = linker(&usr.join("bin")).context("no wasm-ld is installed")?;
        Ok(Self {
            cargo,
            rustc,
            linker,
        })
    }

    /// cargo in `folder`, with its own rustc and no variable of the active toolchain.
    pub(super) fn cargo(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.cargo);
        command.current_dir(folder);
        cargo::forget_outer_cargo(&mut command);
        for key in ACTIVE_TOOLCHAIN {
            command.env_remove(key);
        }
        command
            .env("RUSTC", &self.rustc)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker);
        command
    }

    /// Flags for a build of the standard library from source.
    pub(super) fn build_flags(&self) -> [&'static str; 2] {
        ["-Z", "build-std=std,panic_abort"]
    }

    /// The programs, for the line about the chosen toolchain.
    pub(super) fn summary(&self) -> String {
        format!(
            "{} with {}, building std from source",
            self.cargo.display(),
            self.linker
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
        )
    }
}

/// The newest `wasm-ld-N` in a folder of programs, otherwise `wasm-ld`.
fn linker(programs: &Path) -> Option<PathBuf> {
    let plain = programs.join("wasm-ld");
    newest_version(programs, "wasm-ld")
        .map(|(_, path)| path)
        .or_else(|| plain.exists().then_some(plain))
}

/// Major and minor number of `rustc 1.96.0 (ac68faa20 2026-05-25)` or `1.96`.
fn release(version: &str) -> Option<(u32, u32)> {
    let number = version
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Installs [`PACKAGES`] as root, or with a `sudo` that needs no password.
fn install() -> Result<()> {
    if shell::answer(Command::new("apt-get").arg("--version")).is_none() {
        bail!("apt-get is not installed, so it cannot be added");
    }
    let root = shell::answer(Command::new("id").arg("-u")).is_some_and(|id| id == "0");
    if !root && shell::answer(Command::new("sudo").args(["-n", "true"])).is_none() {
        bail!("installing packages needs root, or a sudo that needs no password");
    }
    eprintln!(
        "wasm toolchain: installing the packages {}",
        PACKAGES.join(" ")
    );
    // Package lists as old as the machine's image name a compiler that is too old, and a fresh
    // container has no lists. If they cannot be updated, the present ones may suffice.
    if let Err(error) = apt_get(root, &["update"]) {
        eprintln!("wasm toolchain: {error:#}; continuing with the present package lists");
    }
    apt_get(root, &install_arguments())
}

fn install_arguments() -> Vec<&'static str> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(PACKAGES);
    arguments
}

/// Runs apt-get. It writes to stdout, which is for results, so its output goes to stderr.
fn apt_get(root: bool, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(if root { "env" } else { "sudo" });
    if !root {
        command.args(["-n", "env"]);
    }
    command
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"])
        .args(arguments);
    shell::run(command.stdout(std::io::stderr()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A tree that looks like an installed distribution, with a rustc of the given version.
    fn tree(version: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let (programs, library) = (
            root.path().join("usr/bin"),
            root.path().join("usr/lib/rustlib/src/rust/library"),
        );
        fs::create_dir_all(&programs).unwrap();
        fs::create_dir_all(&library).unwrap();
        for name in ["cargo", "wasm-ld-9", "wasm-ld-19"] {
            fs::write(programs.join(name), "").unwrap();
        }
        let rustc = programs.join("rustc");
        fs::write(
            &rustc,
            format!("#!/bin/sh\necho 'rustc {version} (abc 2026-01-01)'\n"),
        )
        .unwrap();
        fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(library.join("Cargo.lock"), "").unwrap();
        root
    }

    fn refusal(root: &Path) -> String {
        Distribution::find(root).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_installation_is_found_with_its_newest_linker() {
        let root = tree("9.0.0");
        let found = Distribution::find(root.path()).unwrap();
        assert_eq!(found.linker, root.path().join("usr/bin/wasm-ld-19"));
    }

    #[test]
    fn each_missing_part_is_named() {
        let root = tree("9.0.0");
        fs::remove_file(root.path().join("usr/bin/wasm-ld-9")).unwrap();
        fs::remove_file(root.path().join("usr/bin/wasm-ld-19")).unwrap();
        assert!(refusal(root.path()).contains("wasm-ld"));
        fs::remove_file(
            root.path()
                .join("usr/lib/rustlib/src/rust/library/Cargo.lock"),
        )
        .unwrap();
        assert!(refusal(root.path()).contains("source"));
        fs::remove_file(root.path().join("usr/bin/cargo")).unwrap();
        assert!(refusal(root.path()).contains("usr/bin/cargo"));
    }

    #[test]
    fn debians_ordinary_compiler_is_too_old() {
        assert!(refusal(tree("1.63.0").path()).contains("older than"));
    }

    #[test]
    fn releases_are_parsed_from_the_output_of_rustc() {
        assert_eq!(
            release("rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)"),
            Some((1, 96))
        );
        assert_eq!(release("1.95"), Some((1, 95)));
        assert_eq!(release(""), None);
        assert!(release("rustc 1.100.0") > release("rustc 1.95.0"));
    }

    #[test]
    fn no_variable_of_the_active_toolchain_is_kept() {
        let root = tree("9.0.0");
        let command = Distribution::find(root.path())
            .unwrap()
            .cargo(Path::new("/"));
        let set: Vec<_> = command
            .get_envs()
            .filter(|(_, value)| value.is_some())
            .collect();
        let removed = |key| {
            command
                .get_envs()
                .any(|(k, value)| k == key && value.is_none())
        };
        assert_eq!(set.len(), 3, "{set:?}");
        assert!(removed("RUSTUP_TOOLCHAIN") && removed("LD_LIBRARY_PATH"));
    }
}
