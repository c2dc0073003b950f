//! The thread that waits for file events and reports files once they hold still.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::Instant;

use switchyard_threads::ServiceThread;

use super::events::FolderEvents;
use super::groups::{FileChange, FileGroups};
use super::settler::{Settler, WatchOptions};

/// Watches groups of files until dropped.
pub struct FileWatcher {
    // Dropped in this order: the channel closes and ends the thread, and the thread is joined.
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
    /// A folder does not exist or cannot be read, or the system gives no thread.
    pub fn start<G: FileGroups>(
        thread: &str,
        groups: G,
        options: &WatchOptions,
        report: impl FnMut(G::Key, FileChange) + Send + 'static,
    ) -> Result<Self, WatchError> {
        let paths: Vec<PathBuf> = (groups.folders().into_iter())
            .map(|folder| folder.path)
            .collect();
        let fail = |at: usize, reason: std::io::Error| WatchError {
            folder: paths.get(at).cloned().unwrap_or_default(),
            reason: reason.to_string(),
        };
        // One pending look serves any number of events.
        let (wake, woken) = mpsc::sync_channel(1);
        let wake = Arc::new(wake);
        let events = FolderEvents::start(groups.folders(), &wake);
        let events = events.map_err(|(at, error)| fail(at, error))?;
        let settler = Settler::new(groups, options).map_err(|error| fail(0, error))?;
        let options = options.clone();
        let thread = ServiceThread::spawn(thread, move || {
            report_changes(settler, events, &options, &woken, report);
        })
        .map_err(|error| fail(0, error))?;
        Ok(Self {
            _wake: wake,
            _thread: thread,
        })
    }
}

/// Runs until the channel closes.
fn report_changes<G: FileGroups>(
    mut settler: Settler<G>,
    mut events: FolderEvents,
    options: &WatchOptions,
    woken: &Receiver<()>,
    mut report: impl FnMut(G::Key, FileChange),
) {
    // Files that changed between the first look and the watch have no event.
    let mut look_at = Instant::now();
    let mut is_woken = false;
    loop {
        match woken.recv_timeout(look_at.saturating_duration_since(Instant::now())) {
            // A file that is being written has one event per write: one look serves them all.
            Ok(()) if is_woken => {}
            Ok(()) => {
                is_woken = true;
                look_at = look_at.min(Instant::now() + options.debounce);
            }
            Err(RecvTimeoutError::Timeout) => {
                is_woken = false;
                // Before the look: a change after it has an event.
                events.renew();
                let poll_at = Instant::now() + options.poll;
                let next = settler.look(Instant::now, &mut report);
                look_at = next.map_or(poll_at, |next| next.min(poll_at));
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
