//! File events of the watched folders, as the system gives them. Where it gives none, the poll of the
//! [`FileWatcher`](super::FileWatcher) finds changes later.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::groups::WatchedFolder;
use super::stamps::FileIdentity;

/// Wakes a thread when a file of the folders changes.
pub(super) struct FolderEvents {
    /// `None` if the system has no file events for this process.
    watcher: Option<RecommendedWatcher>,
    folders: Vec<FollowedFolder>,
}

/// A folder, followed by its path: events belong to the folder that was there when it was watched.
struct FollowedFolder {
    folder: WatchedFolder,
    watched: Option<FileIdentity>,
    /// Whether the log says already that it has no events.
    is_told: bool,
}

// === impl FolderEvents ===

impl FolderEvents {
    /// Watches the folders. Those that the system cannot watch are logged.
    ///
    /// # Errors
    /// A folder does not exist; with its position.
    pub(super) fn start(
        folders: Vec<WatchedFolder>,
        wake: &Arc<SyncSender<()>>,
    ) -> Result<Self, (usize, io::Error)> {
        for (at, folder) in folders.iter().enumerate() {
            identity(&folder.path).map_err(|error| (at, error))?;
        }
        let wake = Arc::downgrade(wake);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if is_worth_a_look(&event)
                && let Some(wake) = wake.upgrade()
            {
                // Full: a look is pending. Closed: the thread has ended.
                let _ = wake.try_send(());
            }
        });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "no file events: changes of files are found by polling");
        });
        let follow = |folder| FollowedFolder {
            folder,
            watched: None,
            is_told: false,
        };
        let mut events = Self {
            watcher: watcher.ok(),
            folders: folders.into_iter().map(follow).collect(),
        };
        events.renew();
        Ok(events)
    }

    /// Watches folders that replaced those watched so far, and those that could not be watched.
    pub(super) fn renew(&mut self) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for followed in &mut self.folders {
            let now = identity(&followed.folder.path).ok();
            if now == followed.watched {
                continue;
            }
            if followed.watched.take().is_some() {
                // An error means that the watch ended with the folder.
                let _ = watcher.unwatch(&followed.folder.path);
            }
            if now.is_some() {
                followed.watch(watcher, now);
            }
        }
    }
}

// === impl FollowedFolder ===

impl FollowedFolder {
    fn watch(&mut self, watcher: &mut RecommendedWatcher, now: Option<FileIdentity>) {
        let mode = match self.folder.with_subfolders {
            true => RecursiveMode::Recursive,
            false => RecursiveMode::NonRecursive,
        };
        match watcher.watch(&self.folder.path, mode) {
            Ok(()) => {
                self.watched = now;
                self.is_told = false;
            }
            Err(error) if !self.is_told => {
                self.is_told = true;
                let folder = self.folder.path.display();
                tracing::warn!(%folder, %error, "no file events: changes are found by polling");
            }
            Err(_) => {}
        }
    }
}

fn identity(folder: &Path) -> io::Result<FileIdentity> {
    Ok(FileIdentity::of(&folder.metadata()?))
}

/// Opening or reading a file is an event too, and changes nothing.
fn is_worth_a_look(event: &notify::Result<Event>) -> bool {
    match event {
        Ok(event) => match event.kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            _ => true,
        },
        Err(error) => {
            tracing::warn!(%error, "file events may have been lost");
            true
        }
    }
}
