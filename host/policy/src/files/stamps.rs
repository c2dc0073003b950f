//! How files look from outside, so that a change is seen without reading them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Most files that are compared in one group; larger groups are compared in part.
const FILES_MAX: usize = 10_000;

/// Extensions of files that another program is still writing.
const UNFINISHED: [&str; 3] = ["part", "partial", "tmp"];

/// Length, modification time and inode of files, by path. Differs from an earlier one when a file
/// was written, replaced, added or removed in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStamps(BTreeMap<PathBuf, FileStamp>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    length_bytes: u64,
    modified: Option<SystemTime>,
    /// Differs between a file and another one that was moved to its path.
    inode: u64,
}

// === impl FileStamps ===

impl FileStamps {
    /// No files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a file. Follows links, so that a link to another file is a change. Returns whether
    /// there is such a file.
    pub fn add_file(&mut self, file: &Path) -> bool {
        let Ok(metadata) = file.metadata() else {
            return false;
        };
        if metadata.is_file() {
            self.0.insert(file.to_owned(), FileStamp::of(&metadata));
        }
        metadata.is_file()
    }

    /// Adds the files of a folder, without hidden files and unfinished ones (`.part`, `.partial`,
    /// `.tmp`).
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn add_folder(&mut self, folder: &Path, with_subfolders: bool) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_unfinished = UNFINISHED
                .iter()
                .any(|&e| path.extension() == Some(e.as_ref()));
            if is_hidden(&entry.file_name()) || is_unfinished || self.0.len() >= FILES_MAX {
                continue;
            }
            // Links to folders are not followed: they may lead back here.
            if !entry.file_type()?.is_dir() {
                self.add_file(&path);
            } else if with_subfolders {
                self.add_folder(&path, true)?;
            }
        }
        Ok(())
    }
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length_bytes: metadata.len(),
            modified: metadata.modified().ok(),
            inode: inode(metadata),
        }
    }
}

/// Whether a file name begins with a dot.
pub fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_metadata: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    fn stamps(folder: &Path, with_subfolders: bool) -> FileStamps {
        let mut stamps = FileStamps::default();
        stamps.add_folder(folder, with_subfolders).unwrap();
        stamps
    }

    #[test]
    fn a_file_that_is_replaced_or_removed_changes_the_stamps() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("weights.safetensors");
        fs::write(&file, "old").unwrap();
        let old = stamps(folder.path(), false);
        fs::write(folder.path().join("other"), "new").unwrap();
        fs::rename(folder.path().join("other"), &file).unwrap();
        let new = stamps(folder.path(), false);
        assert_ne!(old, new, "same length, another inode");
        fs::remove_file(&file).unwrap();
        assert!(stamps(folder.path(), false).is_empty());
    }

    #[test]
    fn hidden_and_unfinished_files_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".weights", "weights.part", "weights.partial", "weights.tmp"] {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        assert!(stamps(folder.path(), true).is_empty());
    }

    #[test]
    fn subfolders_count_only_when_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/table.bin"), "one").unwrap();
        assert!(stamps(folder.path(), false).is_empty());
        assert!(!stamps(folder.path(), true).is_empty());
    }
}
