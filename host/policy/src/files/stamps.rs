//! How files look from outside, so that a change is seen without reading them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::regular::is_gone;

/// Most files that are compared in one group; larger groups are compared in part.
const FILES_MAX: usize = 10_000;

/// Extensions of files that another program is still writing.
const UNFINISHED: [&str; 3] = ["part", "partial", "tmp"];

/// Length, modification time and identity of files, by path. Differs from an earlier one when a file
/// was written, replaced, added or removed in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStamps(BTreeMap<PathBuf, FileStamp>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileStamp {
    /// A FIFO or a folder under the name of a file is a change: the loader reports it.
    is_file: bool,
    length_bytes: u64,
    modified: Option<SystemTime>,
    identity: FileIdentity,
}

/// Differs between a file or folder and another one that was moved to its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
    /// Inodes are used again soon after their files are gone.
    created: Option<SystemTime>,
}

// === impl FileStamps ===

impl FileStamps {
    /// No files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// Adds a file, or a special file under its name. Follows links, so that a link to another
    /// file is a change. Returns whether it exists.
    ///
    /// # Errors
    /// The system does not say whether it exists.
    pub fn add_file(&mut self, file: &Path) -> io::Result<bool> {
        match file.metadata() {
            Ok(metadata) => {
                self.0.insert(file.to_owned(), FileStamp::of(&metadata));
                Ok(true)
            }
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(named(file, &error)),
        }
    }

    /// Adds the files of a folder, without hidden files and unfinished ones (`.part`, `.partial`,
    /// `.tmp`). A folder that does not exist has no files. Of links to folders those within it are followed.
    ///
    /// # Errors
    /// The folder exists and cannot be read.
    pub fn add_folder(&mut self, folder: &Path, with_subfolders: bool) -> io::Result<()> {
        let added = match with_subfolders {
            true => folder.canonicalize().and_then(|root| {
                let mut open = vec![root.clone()];
                self.try_add_folder(folder, Some((&root, &mut open)))
            }),
            false => self.try_add_folder(folder, None),
        };
        match added {
            Err(error) if !is_gone(&error) => Err(named(folder, &error)),
            _ => Ok(()),
        }
    }

    /// With a root the folders within it are added too; `open` are those that are being added, which a
    /// link may lead back to.
    fn try_add_folder(
        &mut self,
        folder: &Path,
        mut within: Option<(&Path, &mut Vec<PathBuf>)>,
    ) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_unfinished = UNFINISHED
                .iter()
                .any(|&e| path.extension() == Some(e.as_ref()));
            if is_hidden(&entry.file_name()) || is_unfinished || self.0.len() >= FILES_MAX {
                continue;
            }
            let kind = entry.file_type()?;
            if !(kind.is_dir() || kind.is_symlink() && path.is_dir()) {
                self.add_file(&path)?;
                continue;
            }
            let Some((root, open)) = &mut within else {
                continue;
            };
            let target = match path.canonicalize() {
                Ok(target) => target,
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(named(&path, &error)),
            };
            if !target.starts_with(*root) || open.contains(&target) {
                continue;
            }
            open.push(target);
            let added = self.try_add_folder(&path, Some((*root, &mut **open)));
            open.pop();
            match added {
                Err(error) if !is_gone(&error) => return Err(named(&path, &error)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            is_file: metadata.is_file(),
            length_bytes: metadata.len(),
            modified: metadata.modified().ok(),
            identity: FileIdentity::of(metadata),
        }
    }
}

impl FileIdentity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let (device, inode) = device_and_inode(metadata);
        Self {
            device,
            inode,
            created: metadata.created().ok(),
        }
    }
}

/// The error with the path, which the system leaves out.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Whether a file name begins with a dot.
pub fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

#[cfg(unix)]
fn device_and_inode(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn device_and_inode(_metadata: &Metadata) -> (u64, u64) {
    (0, 0)
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

    #[cfg(unix)]
    #[test]
    fn links_to_folders_within_the_folder_are_followed_once() {
        use std::os::unix::fs::symlink;

        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| folder.path().join(name);
        for version in ["v3", "v4"] {
            fs::create_dir(at(version)).unwrap();
            fs::write(at(version).join("table.bin"), version).unwrap();
            symlink("..", at(version).join("back")).unwrap();
        }
        fs::write(elsewhere.path().join("other.bin"), "other").unwrap();
        symlink(elsewhere.path(), at("elsewhere")).unwrap();
        symlink("v3", at("live")).unwrap();
        let old = stamps(folder.path(), true);
        let names = ["live/table.bin", "v3/table.bin", "v4/table.bin"].map(at);
        assert_eq!(old.paths().collect::<Vec<_>>(), names);
        symlink("v4", at("next")).unwrap();
        fs::rename(at("next"), at("live")).unwrap();
        assert_ne!(old, stamps(folder.path(), true));
        assert!(stamps(folder.path(), false).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn an_error_of_the_system_does_not_count_as_a_removal() {
        let folder = tempfile::tempdir().unwrap();
        let turning = folder.path().join("turning.wasm");
        std::os::unix::fs::symlink(&turning, &turning).unwrap();
        let mut stamps = FileStamps::default();
        let error = stamps.add_file(&turning).unwrap_err();
        assert!(error.to_string().contains("turning.wasm: "), "{error}");
        assert!(stamps.add_folder(&turning, false).is_err());
        let gone = folder.path().join("gone.wasm");
        assert!(!stamps.add_file(&gone).unwrap());
        stamps.add_folder(&gone, false).unwrap();
        assert!(stamps.is_empty());
    }
}
