//! Files and folders that options name, checked before the work that fills them.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::Path;

use super::failure::Failure;

/// Whether a missing folder is made when the result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Folders {
    /// The folder must exist.
    Exist,
    /// Missing folders are made, so the nearest one that exists must take new entries.
    Made,
}

/// Whether a file can be written; changes nothing.
///
/// # Errors
/// Names the option, the path and the system's reason.
pub(super) fn check_file(option: &str, file: &Path, folders: Folders) -> Result<(), Failure> {
    let checked = match file.metadata() {
        Ok(there) if there.is_dir() => Err(Error::from(ErrorKind::IsADirectory)),
        Ok(_) => OpenOptions::new().append(true).open(file).map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = file.parent().unwrap_or(Path::new(""));
            takes_entries(folder, folders)
        }
        Err(error) => Err(error),
    };
    checked.map_err(|error| refused(option, file, &error))
}

/// Whether a folder can be made and filled; changes nothing.
///
/// # Errors
/// As [`check_file`].
pub(super) fn check_folder(option: &str, folder: &Path) -> Result<(), Failure> {
    let checked = takes_entries(folder, Folders::Made);
    checked.map_err(|error| refused(option, folder, &error))
}

/// Tries with a file that is removed again.
fn takes_entries(folder: &Path, folders: Folders) -> Result<(), Error> {
    let here = |folder: &Path| match folder.as_os_str().is_empty() {
        true => Path::new(".").to_owned(),
        false => folder.to_owned(),
    };
    let nearest = match folders {
        Folders::Exist => here(folder),
        Folders::Made => {
            let mut known = folder.ancestors().map(here);
            let known = known.find(|folder| folder.symlink_metadata().is_ok());
            known.unwrap_or_else(|| here(folder))
        }
    };
    tempfile::tempfile_in(nearest).map(drop)
}

fn refused(option: &str, path: &Path, error: &Error) -> Failure {
    Failure::input(format!(
        "{option}: {}: cannot be written: {error}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn reason(checked: Result<(), Failure>) -> String {
        match checked {
            Err(Failure::Input(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_refused_where_it_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let (file, below) = (dir.path().join("a.json"), dir.path().join("no/a.json"));
        check_file("--json", &file, Folders::Exist).unwrap();
        assert!(!file.exists(), "the check leaves nothing behind");
        let missing = reason(check_file("--json", &below, Folders::Exist));
        assert!(missing.starts_with("--json: ") && missing.contains("no/a.json: cannot be"));
        check_file("--out", &below, Folders::Made).unwrap();
        reason(check_file("--json", dir.path(), Folders::Exist));
        std::fs::write(&file, "old").unwrap();
        check_file("--json", &file, Folders::Exist).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        reason(check_file("--out", &file.join("x"), Folders::Made));
        reason(check_folder("--report", &file));
        check_folder("--report", &dir.path().join("a/b")).unwrap();
    }

    #[test]
    fn a_name_alone_is_a_file_of_this_folder() {
        check_file("--json", Path::new("no-such-file.json"), Folders::Exist).unwrap();
    }
}
