//! Programs that a build needs, and what to say where they are missing.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Error, Result, bail};

use crate::shell;

/// Runs a tool whose words belong on stderr, because stdout is kept for results.
///
/// # Errors
/// When it is missing, with `advice`; when it fails, with its command line.
pub(super) fn run(command: &mut Command, advice: &str) -> Result<()> {
    let line = shell::line(command);
    eprintln!("   {line}");
    let status = command.stdout(io::stderr()).status().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        match error.kind() {
            io::ErrorKind::NotFound => Error::msg(format!("{program} is not installed. {advice}")),
            _ => Error::new(error).context(format!("cannot start `{line}`")),
        }
    })?;
    if !status.success() {
        bail!("{status}: `{line}`");
    }
    Ok(())
}

/// Does what a package manager does only when the list it works from has changed since.
///
/// # Errors
/// Those of `install`, and when the stamp cannot be written.
pub(super) fn once(stamp: &Path, list: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    if fs::read_to_string(stamp).is_ok_and(|installed| installed == list) {
        return Ok(());
    }
    install()?;
    // Last, so that an installation that was broken off is begun again.
    fs::write(stamp, list).with_context(|| format!("cannot write {}", stamp.display()))
}

/// `NAME`, else the newest `NAME-N`, among the programs that can be called.
pub(super) fn newest(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    newest_in(name, &path)
}

fn newest_in(name: &str, path: &OsStr) -> Option<PathBuf> {
    let mut found: Option<(u32, PathBuf)> = None;
    for folder in env::split_paths(path) {
        let plain = folder.join(name);
        if plain.is_file() {
            return Some(plain);
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let file = entry.file_name();
            let version = file
                .to_str()
                .and_then(|file| file.strip_prefix(name)?.strip_prefix('-')?.parse().ok());
            if let Some(version) = version
                && found.as_ref().is_none_or(|(best, _)| *best < version)
            {
                found = Some((version, entry.path()));
            }
        }
    }
    found.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_comes_with_advice() {
        let error = run(&mut Command::new("no-such-tool-here"), "Install it.").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-tool-here is not installed. Install it."
        );
    }

    #[test]
    fn a_failing_tool_is_named() {
        let error = run(Command::new("sh").args(["-c", "exit 4"]), "").unwrap_err();
        assert!(error.to_string().contains("sh -c 'exit 4'"), "{error}");
    }

    #[test]
    fn an_unchanged_list_is_not_installed_again() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = folder.path().join("stamp");
        let mut times = 0;
        for list in ["a", "a", "b"] {
            once(&stamp, list, || {
                times += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(times, 2);
        assert!(once(&stamp, "c", || bail!("no network")).is_err());
        assert_eq!(fs::read_to_string(&stamp).unwrap(), "b");
    }

    #[test]
    fn the_newest_version_is_found_unless_there_is_a_plain_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        for name in ["clang-9", "clang-19", "clang-format-20"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(
            newest_in("clang", path),
            Some(folder.path().join("clang-19"))
        );
        fs::write(folder.path().join("clang"), "").unwrap();
        assert_eq!(newest_in("clang", path), Some(folder.path().join("clang")));
        assert_eq!(newest_in("gcc", path), None);
    }
}
