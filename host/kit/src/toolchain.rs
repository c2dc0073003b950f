//! Finds a compiler for [`TARGET`], or installs one.
//!
//! In this order: the active toolchain if it has the target; the same after `rustup target add`;
//! the distribution's packages, which build the standard library from source; otherwise an error
//! with the packages to install.

mod distribution;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use self::distribution::Distribution;
use crate::{cargo, shell};

/// The target of policies: without an operating system, so that they import nothing of one.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// Time limit of `rustup`, which fetches about 20 MB: a dead network must not block the build.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);

const ADVICE: &str = "\
Install one of these, then run the command again:
  rustup:     rustup target add wasm32-unknown-unknown
  Debian 12:  apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld-19
  Fedora:     dnf install rust-std-static-wasm32-unknown-unknown lld
  Arch Linux: pacman -S rust-wasm lld";

/// A compiler for [`TARGET`].
#[derive(Debug)]
pub struct Toolchain {
    source: ToolchainSource,
    reason: String,
}

#[derive(Debug)]
enum ToolchainSource {
    /// The toolchain that runs this program.
    Active,
    /// The distribution's packages, next to a toolchain without the target.
    Distribution(Distribution),
}

/// Finds a toolchain, or installs one.
///
/// # Errors
/// When neither succeeds; with every attempt, and the packages to install.
pub fn find() -> Result<Toolchain> {
    if active_has_target() {
        return Ok(Toolchain::active("it has the target"));
    }
    if rustup_adds_target() && active_has_target() {
        return Ok(Toolchain::active("rustup has just added the target"));
    }
    let rustup = "the active toolchain lacks the target and rustup could not add it";
    match distribution::find_or_install() {
        Ok(found) => Ok(Toolchain {
            source: ToolchainSource::Distribution(found),
            reason: rustup.to_owned(),
        }),
        Err(why) => bail!("no compiler for {TARGET}: {rustup}; {why:#}.\n{ADVICE}"),
    }
}

// === impl Toolchain ===

impl Toolchain {
    fn active(reason: &str) -> Self {
        Self {
            source: ToolchainSource::Active,
            reason: reason.to_owned(),
        }
    }

    /// The toolchain and the reason for choosing it, as one line.
    pub fn summary(&self) -> String {
        match &self.source {
            ToolchainSource::Active => format!("the active toolchain ({})", self.reason),
            ToolchainSource::Distribution(found) => {
                format!("{} ({})", found.summary(), self.reason)
            }
        }
    }

    /// `cargo build --target ...` in `folder`. The caller adds packages, profile and target folder.
    pub fn cargo_build(&self, folder: &Path) -> Command {
        let mut command = match &self.source {
            ToolchainSource::Active => cargo::host(folder),
            ToolchainSource::Distribution(found) => found.cargo(folder),
        };
        // These are meant for the host's compiler.
        for key in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
        ] {
            command.env_remove(key);
        }
        command.args(["build", "--target", TARGET]);
        if let ToolchainSource::Distribution(found) = &self.source {
            command.args(found.build_flags());
        }
        command
    }
}

/// Whether the active toolchain has a standard library for the target.
fn active_has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    shell::answer(&mut command).is_some_and(|folder| has_std(Path::new(&folder)))
}

/// Whether a folder holds a standard library. rustc prints the folder even if it does not exist.
fn has_std(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    })
}

/// Lets rustup add the target, without output: after a failure `find` tries the distribution.
fn rustup_adds_target() -> bool {
    if shell::answer(Command::new("rustup").arg("--version")).is_none() {
        return false;
    }
    eprintln!("wasm toolchain: rustup target add {TARGET}");
    let mut command = Command::new("rustup");
    command
        .args(["target", "add", TARGET])
        .env("RUSTUP_MAX_RETRIES", "1");
    shell::succeeds_within(&mut command, RUSTUP_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_std_is_not_the_target() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_std(&folder.path().join("missing")));
        assert!(!has_std(folder.path()));
        fs::write(folder.path().join("libcore-1.rlib"), "").unwrap();
        assert!(!has_std(folder.path()));
        fs::write(folder.path().join("libstd-2c19.rlib"), "").unwrap();
        assert!(has_std(folder.path()));
    }

    #[test]
    fn host_flags_do_not_reach_the_wasm_build() {
        let command = Toolchain::active("a test").cargo_build(Path::new("/"));
        let removed = |key| {
            command
                .get_envs()
                .any(|(k, value)| k == key && value.is_none())
        };
        assert!(removed("RUSTFLAGS") && removed("CARGO_ENCODED_RUSTFLAGS"));
        assert!(command.get_args().any(|argument| argument == TARGET));
    }

    #[test]
    fn the_summary_names_the_toolchain_and_the_reason() {
        let summary = Toolchain::active("it has the target").summary();
        assert_eq!(summary, "the active toolchain (it has the target)");
    }
}
