//! Says when a policy in the policies directory changed and is whole.
//!
//! File events only say when to look. What is reported follows from what the directory
//! holds: editors, `cp`, `mv`, an atomic rename and an in-place rewrite end in the same two
//! events.

mod settle;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use settle::Settle;

/// What happened to a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyFileEvent {
    /// `NAME.wasm`, the settings in `NAME.toml` beside it, or a file that it may read in `NAME/`
    /// is new or other than before; this is the path of `NAME.wasm`.
    Changed(PathBuf),
    /// `NAME.wasm` is gone.
    Removed(PathBuf),
}

/// How long to wait for files to be whole.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// A file must stay the same for this long before it is looked at closely.
    pub debounce: Duration,
    /// A file whose end is missing is reported all the same after this long without a
    /// change: whoever loads it says what is wrong with it.
    pub give_up: Duration,
}

/// Watches one directory until dropped.
pub struct Watcher {
    // Dropped first: no file event comes after that.
    _events: RecommendedWatcher,
    // Dropped second: the thread's channel closes with the last sender.
    wake: Option<SyncSender<Wake>>,
    thread: Option<JoinHandle<()>>,
}

/// Why a directory cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("policies directory {}: {reason}", dir.display())]
pub struct WatchError {
    /// The directory.
    pub dir: PathBuf,
    /// What the system says.
    pub reason: String,
}

enum Wake {
    Look,
    Stop,
}

// === impl WatchOptions ===

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(50),
            give_up: Duration::from_secs(10),
        }
    }
}

// === impl Watcher ===

impl Watcher {
    /// Watches the policies in `dir`. What is there already is not reported. `report` is
    /// called on the watcher's own thread, one event at a time.
    ///
    /// # Errors
    /// The directory is not there, or the system cannot watch it.
    pub fn start(
        dir: &Path,
        options: WatchOptions,
        report: impl FnMut(PolicyFileEvent) + Send + 'static,
    ) -> Result<Self, WatchError> {
        let fail = |reason: String| WatchError {
            dir: dir.to_owned(),
            reason,
        };
        // One pending look stands for any number of events.
        let (wake, woken) = mpsc::sync_channel(1);
        let mut events = notify::recommended_watcher({
            let wake = wake.clone();
            move |event: notify::Result<Event>| {
                if worth_a_look(&event) {
                    // Full: a look is pending already. Closed: nobody looks any more.
                    let _ = wake.try_send(Wake::Look);
                }
            }
        })
        .map_err(|e| fail(e.to_string()))?;
        events
            .watch(dir, RecursiveMode::Recursive)
            .map_err(|e| fail(e.to_string()))?;
        let debounce = options.debounce;
        let settle = Settle::of(dir, options).map_err(|e| fail(e.to_string()))?;
        let thread = thread::Builder::new()
            .name("policy-watcher".to_owned())
            .spawn(move || run(settle, debounce, &woken, report))
            .map_err(|e| fail(e.to_string()))?;
        Ok(Self {
            _events: events,
            wake: Some(wake),
            thread: Some(thread),
        })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(wake) = self.wake.take() {
            // Waits only for a look that is under way. Closed: the thread has ended.
            let _ = wake.send(Wake::Stop);
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the policy watcher had panicked");
        }
    }
}

fn run(
    mut settle: Settle,
    debounce: Duration,
    woken: &Receiver<Wake>,
    mut report: impl FnMut(PolicyFileEvent),
) {
    // Files that changed between the first scan and the watch have no event.
    let mut look_at = Some(Instant::now());
    loop {
        let wake = match look_at {
            Some(at) => woken.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match wake {
            // A file that is being written has an event for every part: one look for all of them.
            Ok(Wake::Look) => {
                look_at.get_or_insert_with(|| Instant::now() + debounce);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        look_at = settle.look(Instant::now(), &mut report);
    }
}

/// Reading a file is an event too, and not one that changes anything.
fn worth_a_look(event: &notify::Result<Event>) -> bool {
    match event {
        Ok(event) => match event.kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            _ => true,
        },
        Err(error) => {
            tracing::warn!(%error, "watching the policies directory");
            // Events may have been lost.
            true
        }
    }
}
