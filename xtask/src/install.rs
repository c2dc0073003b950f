//! Files that appear whole or not at all, because a running server may be watching.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result};

/// Puts `bytes` at `path` by writing beside it and renaming; nothing when they are there already.
///
/// Returns whether the file changed.
///
/// # Errors
/// When the folder cannot be made or written; the path is named.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let temporary = temporary(path);
    fs::write(&temporary, bytes)
        .with_context(|| format!("cannot write {}", temporary.display()))?;
    fs::rename(&temporary, path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// A name in the same folder that no watcher takes for a policy: hidden, and not `.wasm`.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policies/fcfs.wasm");
        assert!(write(&path, b"one").unwrap());
        let first = fs::metadata(&path).unwrap().modified().unwrap();
        assert!(!write(&path, b"one").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), first);
        assert!(write(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    #[test]
    fn nothing_else_is_left_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("fcfs.wasm"), b"one").unwrap();
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["fcfs.wasm"]);
    }

    #[test]
    fn the_temporary_name_is_no_policy() {
        let name = temporary(Path::new("/a/fcfs.wasm"));
        assert!(
            name.extension()
                .is_some_and(|extension| extension != "wasm")
        );
        assert!(name.file_name().unwrap().to_string_lossy().starts_with('.'));
    }
}
