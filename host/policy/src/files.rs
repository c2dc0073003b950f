//! Files that change on disk: reported once they hold still.
//!
//! File events only say when to look. A report follows from how the files look then, so editors,
//! `cp`, `mv`, an atomic rename and a rewrite in place all end in the same report.
//!
//! - [`FileStamps`]: how files look from outside
//! - [`FileGroups`]: files that belong together, such as a policy with its settings and artifacts
//! - [`FileWatcher`]: the thread that waits for file events and reports

mod groups;
mod settler;
mod stamps;
mod watcher;

pub use groups::{FileChange, FileGroups, WatchedFolder};
pub use settler::WatchOptions;
pub use stamps::{FileStamps, is_hidden};
pub use watcher::{FileWatcher, WatchError};
