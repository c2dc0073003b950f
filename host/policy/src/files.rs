//! Files that change on disk: reported once they hold still.
//!
//! File events only say when to look. A report follows from how the files look then, so editors,
//! `cp`, `mv`, an atomic rename and a rewrite in place all end in the same report.
//!
//! - [`read_regular`]: files that are regular and not too long, without waiting
//! - [`FileStamps`]: how files look from outside
//! - [`FileGroups`]: files that belong together, such as a policy with its settings and artifacts
//! - [`FileWatcher`]: the thread that waits for file events and reports

mod events;
mod groups;
mod regular;
mod settler;
mod stamps;
mod watcher;

pub use groups::{FileChange, FileGroups, WatchedFolder};
pub(crate) use regular::read_at_most;
pub use regular::{FileError, is_gone, open_regular, read_regular, read_regular_text};
pub use settler::WatchOptions;
pub use stamps::{FileStamps, is_hidden};
pub use watcher::{FileWatcher, WatchError};
