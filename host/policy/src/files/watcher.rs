//! The thread that waits for file events and reports files once they hold still.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use switchyard_threads::ServiceThread;

use super::groups::{FileChange, FileGroups};
use super::settler::{Settler, WatchOptions};

/// Watches groups of files until dropped.
pub struct FileWatcher {
    // Dropped in this order: no file event comes, the channel closes and ends the thread, and the
    // thread is joined.
    _events: RecommendedWatcher,
    _wake: Arc<SyncSender<()>>,
    _thread: ServiceThread,
}

/// Why files cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch {}: {reason}", folder.display())]
pub struct WatchError {
    /// The folder.
    pub folder: PathBuf,
    /// The system's reason.
    pub reason: String,
}

// === impl FileWatcher ===

impl FileWatcher {
    /// Watches files from now on. Files that exist already are not reported. `report` is called on
    /// a thread of the given name, for one group at a time.
    ///
    /// # Errors
    /// A folder does not exist, or the system cannot watch it.
    pub fn start<G: FileGroups>(
        thread: &str,
        groups: G,
        options: &WatchOptions,
        report: impl FnMut(G::Key, FileChange) + Send + 'static,
    ) -> Result<Self, WatchError> {
        let folders = groups.folders();
        let first = folders.first().map(|folder| folder.path.clone());
        let fail = |folder: PathBuf, reason: String| WatchError { folder, reason };
        let fail_all = |reason: String| fail(first.clone().unwrap_or_default(), reason);
        // One pending look serves any number of events.
        let (wake, woken) = mpsc::sync_channel(1);
        let wake = Arc::new(wake);
        let mut events = notify::recommended_watcher({
            let wake = Arc::downgrade(&wake);
            move |event: notify::Result<Event>| {
                if is_worth_a_look(&event)
                    && let Some(wake) = wake.upgrade()
                {
                    // Full: a look is pending. Closed: the thread has ended.
                    let _ = wake.try_send(());
                }
            }
        })
        .map_err(|error| fail_all(error.to_string()))?;
        for folder in folders {
            let mode = match folder.with_subfolders {
                true => RecursiveMode::Recursive,
                false => RecursiveMode::NonRecursive,
            };
            events
                .watch(&folder.path, mode)
                .map_err(|error| fail(folder.path, error.to_string()))?;
        }
        let settler = Settler::new(groups, options).map_err(|error| fail_all(error.to_string()))?;
        let debounce = options.debounce;
        let thread = ServiceThread::spawn(thread, move || {
            report_changes(settler, debounce, &woken, report);
        })
        .map_err(|error| fail_all(error.to_string()))?;
        Ok(Self {
            _events: events,
            _wake: wake,
            _thread: thread,
        })
    }
}

/// Runs until the channel closes.
fn report_changes<G: FileGroups>(
    mut settler: Settler<G>,
    debounce: Duration,
    woken: &Receiver<()>,
    mut report: impl FnMut(G::Key, FileChange),
) {
    // Files that changed between the first look and the watch have no event.
    let mut look_at = Some(Instant::now());
    loop {
        let wake = match look_at {
            Some(at) => woken.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match wake {
            // A file that is being written has one event per write: one look serves them all.
            Ok(()) => {
                look_at.get_or_insert_with(|| Instant::now() + debounce);
            }
            Err(RecvTimeoutError::Timeout) => look_at = settler.look(Instant::now, &mut report),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
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
