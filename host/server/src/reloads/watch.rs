//! Says when the files of a variant have changed and hold still.
//!
//! File events only say when to look; what is reported follows from how the files look. A
//! rename, a copy and a rewrite in place end in the same report, the last two perhaps in one too
//! many: what is read half written is refused, and read again once it is whole.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use switchyard_core::ids::VariantId;
use thiserror::Error;

/// Files must look the same for this long before they are read.
const SETTLE: Duration = Duration::from_millis(150);

/// Events of this long are one look.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Why a folder cannot be followed.
#[derive(Debug, Error)]
#[error("{}: {reason}", dir.display())]
pub(super) struct WatchError {
    dir: PathBuf,
    reason: String,
}

/// Follows folders until dropped.
pub(super) struct Watch {
    // Dropped first: no file event comes after that.
    _events: RecommendedWatcher,
    wake: Option<SyncSender<Wake>>,
    thread: Option<JoinHandle<()>>,
}

enum Wake {
    Look,
    Stop,
}

// === impl Watch ===

impl Watch {
    /// Follows the files in these folders. What is there already is not reported. `report` is
    /// called on a thread of its own, for one variant at a time.
    pub(super) fn start(
        pool: &str,
        dirs: BTreeMap<VariantId, PathBuf>,
        report: impl Fn(VariantId) + Send + 'static,
    ) -> Result<Self, WatchError> {
        let fail = |dir: &Path, reason: String| WatchError {
            dir: dir.to_owned(),
            reason,
        };
        // One pending look stands for any number of events.
        let (wake, woken) = mpsc::sync_channel(1);
        let looks = wake.clone();
        let events = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Reading a file is an event too, and not one that changes anything. An error: events
            // may have been lost.
            if event.map_or(true, |event| !event.kind.is_access()) {
                // Full: a look is pending already. Closed: nobody looks any more.
                let _ = looks.try_send(Wake::Look);
            }
        });
        let nowhere = Path::new("");
        let mut events = events.map_err(|e| fail(nowhere, e.to_string()))?;
        for dir in dirs.values() {
            events
                .watch(dir, RecursiveMode::NonRecursive)
                .map_err(|e| fail(dir, e.to_string()))?;
        }
        let looked: BTreeMap<_, _> = dirs
            .into_iter()
            .map(|(variant, dir)| (variant, Followed::of(dir)))
            .collect();
        let thread = thread::Builder::new()
            .name(format!("{pool}-weights"))
            .spawn(move || run(looked, &woken, report))
            .map_err(|e| fail(nowhere, e.to_string()))?;
        Ok(Self {
            _events: events,
            wake: Some(wake),
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(wake) = self.wake.take() {
            // Waits only for a reload that is under way. Closed: the thread has ended.
            let _ = wake.send(Wake::Stop);
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the weights thread panicked");
        }
    }
}

fn run(
    mut followed: BTreeMap<VariantId, Followed>,
    woken: &Receiver<Wake>,
    report: impl Fn(VariantId),
) {
    // Files that changed between the first look and the watch have no event.
    let mut look_at = Some(Instant::now());
    loop {
        let wake = match look_at {
            Some(at) => woken.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match wake {
            Ok(Wake::Look) => {
                look_at.get_or_insert_with(|| Instant::now() + DEBOUNCE);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        look_at = None;
        for (&variant, followed) in &mut followed {
            let now = Instant::now();
            match followed.look(now) {
                Look::Same => {}
                Look::Changing(until) => {
                    look_at = Some(look_at.map_or(until, |at: Instant| at.min(until)));
                }
                Look::Changed => report(variant),
            }
        }
    }
}

// === what files look like ===

/// The files of one variant.
struct Followed {
    dir: PathBuf,
    reported: Files,
    changing: Option<(Files, Instant)>,
}

/// Length, time and inode by name: changes whenever a file does, by any of the usual ways.
type Files = BTreeMap<PathBuf, (u64, Option<SystemTime>, u64)>;

#[derive(Debug, PartialEq, Eq)]
enum Look {
    Same,
    /// Look again then.
    Changing(Instant),
    Changed,
}

impl Followed {
    fn of(dir: PathBuf) -> Self {
        Self {
            reported: files(&dir).unwrap_or_default(),
            changing: None,
            dir,
        }
    }

    fn look(&mut self, now: Instant) -> Look {
        let files = files(&self.dir).unwrap_or_default();
        if files == self.reported {
            self.changing = None;
            return Look::Same;
        }
        match &self.changing {
            Some((before, since)) if *before == files => {
                let until = *since + SETTLE;
                if now < until {
                    return Look::Changing(until);
                }
                self.changing = None;
                self.reported = files;
                Look::Changed
            }
            _ => {
                self.changing = Some((files, now));
                Look::Changing(now + SETTLE)
            }
        }
    }
}

/// The files of a folder, but for those that are on their way there.
fn files(dir: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let passing = path.extension().is_some_and(|e| {
            ["part", "partial", "tmp"]
                .iter()
                .any(|passing| e == *passing)
        });
        // Follows links, so that a link that is turned counts as a change.
        if let (false, false, Ok(found)) = (hidden, passing, std::fs::metadata(&path))
            && found.is_file()
        {
            files.insert(path, (found.len(), found.modified().ok(), inode(&found)));
        }
    }
    Ok(files)
}

#[cfg(unix)]
fn inode(found: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    found.ino()
}

#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_change_is_reported_once_it_holds_still() {
        let dir = tempfile::tempdir().unwrap();
        let weights = dir.path().join("weights.safetensors");
        std::fs::write(&weights, "old").unwrap();
        let mut followed = Followed::of(dir.path().to_path_buf());
        let start = Instant::now();
        assert_eq!(followed.look(start), Look::Same);
        std::fs::write(dir.path().join("weights.partial"), "half").unwrap();
        assert_eq!(followed.look(start), Look::Same, "it is on its way");
        std::fs::write(&weights, "newer").unwrap();
        assert_eq!(followed.look(start), Look::Changing(start + SETTLE));
        std::fs::write(&weights, "newest").unwrap();
        let later = start + SETTLE;
        assert_eq!(followed.look(later), Look::Changing(later + SETTLE));
        assert_eq!(followed.look(later + SETTLE), Look::Changed);
        assert_eq!(followed.look(later + SETTLE * 2), Look::Same);
        std::fs::remove_file(&weights).unwrap();
        assert_ne!(
            followed.look(later),
            Look::Same,
            "a file that goes is a change"
        );
    }
}
