//! Files that belong together and are reported together.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::stamps::FileStamps;

/// Groups of files that are watched, such as the policies of a folder.
pub trait FileGroups: Send + 'static {
    /// Names a group.
    type Key: Clone + Ord + Send;

    /// The folders to watch.
    fn folders(&self) -> Vec<WatchedFolder>;

    /// The groups that exist now.
    ///
    /// # Errors
    /// A folder cannot be read.
    fn keys(&self) -> io::Result<BTreeSet<Self::Key>>;

    /// How the files of a group look now; empty once the group is gone.
    ///
    /// # Errors
    /// The system does not say. The group counts as unchanged and is looked at again later.
    fn stamps(&self, key: &Self::Key) -> io::Result<FileStamps>;

    /// Whether no file of the group is half written, as far as its content tells. A group that is
    /// not whole is reported only after [`WatchOptions::give_up`](super::WatchOptions::give_up).
    ///
    /// # Errors
    /// The files cannot be read for now, such as by a process without free descriptors. The group
    /// is looked at again later.
    fn is_whole(&self, _key: &Self::Key) -> io::Result<bool> {
        Ok(true)
    }
}

/// A folder to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedFolder {
    /// The folder.
    pub path: PathBuf,
    /// Watch the folders below it as well.
    pub with_subfolders: bool,
}

/// A change of a group of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// At least one of its files is new, changed or gone.
    Changed,
    /// All of its files are gone.
    Removed,
}
