//! Finds a compiler for [`TARGET`], getting one when there is none.
//!
//! In this order: the active toolchain when it has the target; the same after
//! `rustup target add`; the distribution's packages, which build the standard library from
//! source; else a message that says what to install.

mod distribution;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use self::distribution::Distribution;
use crate::{cargo, shell};

/// What policies are compiled for: no operating system, so nothing to import from one.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// How long `rustup` may take; about 20 MB are fetched, and a dead network must not hang us.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);

const ADVICE: &str = "\
Install one of these, then run the command again:
  rustup:     rustup target add wasm32-unknown-unknown
  Debian 12:  apt-get install --no-install-recommends rustc-web cargo-web rust-web-src lld-19
  Fedora:     dnf install rust-std-static-wasm32-unknown-unknown lld
  Arch Linux: pacman -S rust-wasm lld";

/// A way to compile for [`TARGET`]. Found once a run.
#[derive(Debug)]
pub struct Toolchain {
    source: Source,
    reason: String,
}

#[derive(Debug)]
enum Source {
    /// The toolchain that runs this program.
    Active,
    /// The distribution's packages, beside a toolchain without the target.
    Distribution(Distribution),
}

/// Finds a toolchain, installing one when it must.
///
/// # Errors
/// When every way failed; the message lists what was tried and what to install.
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
            source: Source::Distribution(found),
            reason: rustup.to_owned(),
        }),
        Err(why) => bail!("nothing here compiles for {TARGET}: {rustup}; {why:#}.\n{ADVICE}"),
    }
}

// === impl Toolchain ===

impl Toolchain {
    fn active(reason: &str) -> Self {
        Self {
            source: Source::Active,
            reason: reason.to_owned(),
        }
    }

    /// Which toolchain this is and why it was chosen, as one line.
    pub fn summary(&self) -> String {
        match &self.source {
            Source::Active => format!("the active toolchain ({})", self.reason),
            Source::Distribution(found) => format!("{} ({})", found.summary(), self.reason),
        }
    }

    /// `cargo build --target ...` in `folder`; the caller adds packages, profile and target folder.
    pub fn cargo_build(&self, folder: &Path) -> Command {
        let mut command = match &self.source {
            Source::Active => cargo::host(folder),
            Source::Distribution(found) => found.cargo(folder),
        };
        // Flags meant for the host's compiler, and the one folder that must not be shared.
        for key in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
        ] {
            command.env_remove(key);
        }
        command.args(["build", "--target", TARGET]);
        if let Source::Distribution(found) = &self.source {
            command.args(found.build_flags());
        }
        command
    }
}

/// Whether the active toolchain comes with a standard library for the target.
fn active_has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    shell::answer(&mut command).is_some_and(|folder| has_std(Path::new(&folder)))
}

/// rustc prints the folder whether it exists or not, so its contents decide.
fn has_std(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    })
}

/// Asks rustup for the target. Quiet: where it fails, the next way is tried.
fn rustup_adds_target() -> bool {
    if shell::answer(Command::new("rustup").arg("--version")).is_none() {
        return false;
    }
    eprintln!("wasm toolchain: asking rustup for {TARGET}");
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
    fn a_folder_without_std_is_no_target() {
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
    fn the_summary_says_which_and_why() {
        let summary = Toolchain::active("it has the target").summary();
        assert_eq!(summary, "the active toolchain (it has the target)");
    }
}
