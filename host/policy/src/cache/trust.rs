//! Folders and files that only this user can have written. Owner and permissions are those of the
//! opened folder and the opened file, so that a change of names in between has no effect.

use std::fs::File;
use std::io;
use std::path::Path;

use super::entry::EntryError;
use crate::files::read_at_most;

/// Longest entry: several times the code of the largest component.
const ENTRY_BYTES_MAX: u64 = 1 << 30;

/// An opened folder that belongs to this user or to root and that no other user may write to.
pub(super) struct TrustedFolder {
    #[cfg(unix)]
    folder: std::os::fd::OwnedFd,
    #[cfg(not(unix))]
    folder: std::path::PathBuf,
}

/// Makes a folder to which only this user may write, if there is none.
#[cfg(unix)]
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// Makes a folder, if there is none.
#[cfg(not(unix))]
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)
}

#[cfg(unix)]
impl TrustedFolder {
    pub(super) fn open(dir: &Path) -> Result<Self, EntryError> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(dir, flags, Mode::empty()).map_err(io::Error::from)?;
        check(
            "the folder",
            &rustix::fs::fstat(&folder).map_err(io::Error::from)?,
        )?;
        Ok(Self { folder })
    }

    /// Reads a file. Does not follow links, and never waits.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, EntryError> {
        use rustix::fs::{FileType, Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, name, flags, Mode::empty());
        let file = file.map_err(io::Error::from)?;
        let stat = rustix::fs::fstat(&file).map_err(io::Error::from)?;
        check("the file", &stat)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(EntryError::Refused("no regular file".to_owned()));
        }
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        Ok(read_at_most(File::from(file), bytes, ENTRY_BYTES_MAX)?)
    }
}

/// The permission or owner that lets other users write, if any. root can write anyway.
#[cfg(unix)]
fn check(subject: &'static str, stat: &rustix::fs::Stat) -> Result<(), EntryError> {
    let untrusted = |reason| Err(EntryError::Untrusted { subject, reason });
    if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
        return untrusted("belongs to another user");
    }
    if stat.st_mode & 0o022 != 0 {
        return untrusted("may be written by the group or by others");
    }
    Ok(())
}

#[cfg(not(unix))]
impl TrustedFolder {
    pub(super) fn open(dir: &Path) -> Result<Self, EntryError> {
        let folder = dir.to_owned();
        Ok(Self { folder })
    }

    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, EntryError> {
        let path = self.folder.join(name);
        let file = File::open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(read_at_most(file, bytes, ENTRY_BYTES_MAX)?)
    }
}
