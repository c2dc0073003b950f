//! Runs the programs that a build needs, with advice when they are missing.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Error, Result, bail};

use crate::programs::newest_version;
use crate::shell;

/// Runs a tool. Its output goes to stderr, because stdout is for results.
///
/// # Errors
/// When the tool is missing, with `advice`. When it fails, with its command line.
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

/// Installs packages if their list has changed since the last time. The stamp is a file with the
/// list that was installed.
///
/// # Errors
/// Those of `install`, or the stamp cannot be written.
pub(super) fn once(stamp: &Path, list: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    if fs::read_to_string(stamp).is_ok_and(|installed| installed == list) {
        return Ok(());
    }
    install()?;
    // Last, so that an interrupted installation is repeated.
    fs::write(stamp, list).with_context(|| format!("cannot write {}", stamp.display()))
}

/// `NAME`, otherwise the newest `NAME-N`, in the folders of `PATH`.
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
        if let Some((version, path)) = newest_version(&folder, name)
            && found.as_ref().is_none_or(|(best, _)| *best < version)
        {
            found = Some((version, path));
        }
    }
    found.map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_missing_tool_has_advice() {
        let error = run(&mut Command::new("no-such-tool-here"), "Install it.").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-tool-here is not installed. Install it."
        );
    }

    #[test]
    fn the_error_for_a_failing_tool_has_its_command_line() {
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
    fn the_newest_version_is_found_unless_there_is_a_plain_name() {
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
