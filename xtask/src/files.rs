//! Files of the repository, found by extension, and copies of folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Files below `root` with such an extension, without build outputs and hidden folders, in a
/// fixed order.
///
/// # Errors
/// Names the folder that cannot be read.
pub(crate) fn below(root: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if extension.is_some_and(&wanted) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The files of a folder, folders below it too.
pub(crate) fn copy_folder(from: &Path, onto: &Path) -> Result<()> {
    fs::create_dir_all(onto).with_context(|| onto.display().to_string())?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, to) = (entry.path(), onto.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &to)?;
        } else {
            fs::copy(&path, &to).with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}

/// An empty folder.
pub(crate) fn anew(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Copies a file into a folder that is made.
pub(crate) fn file(from: &Path, onto: &Path) -> Result<()> {
    if let Some(folder) = onto.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::copy(from, onto).with_context(|| format!("{} to {}", from.display(), onto.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_copied_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (from, onto) = (dir.path().join("from"), dir.path().join("onto"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::write(from.join("top"), "1").unwrap();
        fs::write(from.join("a/b/deep"), "2").unwrap();
        copy_folder(&from, &onto).unwrap();
        assert_eq!(fs::read_to_string(onto.join("top")).unwrap(), "1");
        assert_eq!(fs::read_to_string(onto.join("a/b/deep")).unwrap(), "2");
        assert!(copy_folder(&dir.path().join("none"), &onto).is_err());
    }
}
