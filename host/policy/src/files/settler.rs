//! Compares groups of files with their last report, and waits until they hold still.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use super::groups::{FileChange, FileGroups};
use super::stamps::FileStamps;

/// How long to wait for files that change.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// File events within this time lead to one look at the files.
    pub debounce: Duration,
    /// Files are reported once they have looked the same for this long.
    pub settle: Duration,
    /// A group that is not whole is reported after this long without a change, so that the loader
    /// reports why.
    pub give_up: Duration,
    /// Files are looked at this often without a file event: network file systems have none, and
    /// neither has a link further up that leads to another folder now.
    pub poll: Duration,
}

/// Files as reported, and as they look while they change.
pub(super) struct Settler<G: FileGroups> {
    groups: G,
    settle: Duration,
    give_up: Duration,
    reported: BTreeMap<G::Key, FileStamps>,
    changing: BTreeMap<G::Key, ChangingFiles>,
    /// Groups that cannot be looked at, as the log says already.
    unreadable: BTreeSet<G::Key>,
    /// Whether the groups cannot be listed, as the log says already.
    unlisted: bool,
}

struct ChangingFiles {
    stamps: FileStamps,
    /// When they began to look like this.
    since: Instant,
}

// === impl WatchOptions ===

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(50),
            settle: Duration::from_millis(50),
            give_up: Duration::from_secs(10),
            poll: Duration::from_secs(2),
        }
    }
}

// === impl Settler ===

impl<G: FileGroups> Settler<G> {
    /// Takes the files that exist as reported.
    pub(super) fn new(groups: G, options: &WatchOptions) -> io::Result<Self> {
        let stamped = |key: G::Key| {
            let stamps = groups.stamps(&key)?;
            Ok((key, stamps))
        };
        let reported: io::Result<_> = groups.keys()?.into_iter().map(stamped).collect();
        let reported = reported?;
        Ok(Self {
            groups,
            settle: options.settle,
            give_up: options.give_up,
            reported,
            changing: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            unlisted: false,
        })
    }

    /// Looks at all groups, reports those that have settled, and returns when to look again.
    pub(super) fn look(
        &mut self,
        clock: impl Fn() -> Instant,
        mut report: impl FnMut(G::Key, FileChange),
    ) -> Option<Instant> {
        let mut keys = self.keys();
        keys.extend(self.reported.keys().cloned());
        for key in keys {
            match self.look_at(&key, clock()) {
                Ok(change) => {
                    self.unreadable.remove(&key);
                    change.into_iter().for_each(|c| report(key.clone(), c));
                }
                Err(error) => self.cannot_look(key, &error),
            }
        }
        self.next_look(clock())
    }

    /// The groups that exist; none if they cannot be listed, such as in a folder that is being
    /// removed. Groups that were reported are looked at in any case.
    fn keys(&mut self) -> BTreeSet<G::Key> {
        match self.groups.keys() {
            Ok(keys) => {
                self.unlisted = false;
                keys
            }
            Err(error) => {
                if !std::mem::replace(&mut self.unlisted, true) {
                    tracing::warn!(%error, "a watched folder cannot be read; it is tried again");
                }
                BTreeSet::new()
            }
        }
    }

    /// An error says nothing about the files: they count as unchanged until the next poll.
    fn cannot_look(&mut self, key: G::Key, error: &io::Error) {
        self.changing.remove(&key);
        if self.unreadable.insert(key) {
            tracing::warn!(
                %error,
                "watched files cannot be read: those read before stay in use; they are tried again"
            );
        }
    }

    fn look_at(&mut self, key: &G::Key, now: Instant) -> io::Result<Option<FileChange>> {
        let stamps = self.groups.stamps(key)?;
        if self.reported.get(key).unwrap_or(&FileStamps::default()) == &stamps {
            self.changing.remove(key);
            return Ok(None);
        }
        let since = match self.changing.get(key) {
            Some(changing) if changing.stamps == stamps => changing.since,
            _ => {
                let changing = ChangingFiles { stamps, since: now };
                self.changing.insert(key.clone(), changing);
                return Ok(None);
            }
        };
        let unchanged_for = now.saturating_duration_since(since);
        if unchanged_for < self.settle
            || unchanged_for < self.give_up && !self.groups.is_whole(key)?
        {
            return Ok(None);
        }
        self.changing.remove(key);
        if stamps.is_empty() {
            self.reported.remove(key);
            return Ok(Some(FileChange::Removed));
        }
        self.reported.insert(key.clone(), stamps);
        Ok(Some(FileChange::Changed))
    }

    fn next_look(&self, now: Instant) -> Option<Instant> {
        let looks = self.changing.values().map(|changing| {
            let settled = changing.since + self.settle;
            // Groups that have held still and are not whole yet.
            let later = now + self.settle / 2;
            if settled > now { settled } else { later }
        });
        looks.min()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::files::WatchedFolder;

    const SETTLE: Duration = Duration::from_millis(150);
    const GIVE_UP: Duration = Duration::from_secs(1);

    /// One group: the files of a folder. A file with `half` in it is not whole.
    struct OneFolder(PathBuf);

    impl FileGroups for OneFolder {
        type Key = ();

        fn folders(&self) -> Vec<WatchedFolder> {
            Vec::new()
        }

        fn keys(&self) -> io::Result<BTreeSet<()>> {
            Ok([()].into())
        }

        fn stamps(&self, (): &()) -> io::Result<FileStamps> {
            let mut stamps = FileStamps::default();
            stamps.add_folder(&self.0, false)?;
            Ok(stamps)
        }

        /// A file with `locked` in it cannot be read for now.
        fn is_whole(&self, (): &()) -> io::Result<bool> {
            let text = fs::read_to_string(self.0.join("file"));
            match text.as_deref() {
                Ok("locked") => Err(io::Error::other("too many open files")),
                text => Ok(text.is_ok_and(|text| text != "half")),
            }
        }
    }

    struct Watched {
        folder: tempfile::TempDir,
        settler: Settler<OneFolder>,
        start: Instant,
    }

    impl Watched {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("file"), "old").unwrap();
            let options = WatchOptions {
                settle: SETTLE,
                give_up: GIVE_UP,
                ..WatchOptions::default()
            };
            let groups = OneFolder(folder.path().to_owned());
            Self {
                settler: Settler::new(groups, &options).unwrap(),
                folder,
                start: Instant::now(),
            }
        }

        fn write(&self, text: &str) {
            fs::write(self.folder.path().join("file"), text).unwrap();
        }

        /// The report at a time after the start, and the time of the next look.
        fn look(&mut self, after: Duration) -> (Option<FileChange>, Option<Duration>) {
            let (now, mut reported) = (self.start + after, None);
            let next = self
                .settler
                .look(|| now, |(), change| reported = Some(change));
            (reported, next.map(|next| next - self.start))
        }
    }

    #[test]
    fn a_change_is_reported_once_it_holds_still() {
        let mut watched = Watched::new();
        assert_eq!(watched.look(Duration::ZERO), (None, None));
        watched.write("newer");
        assert_eq!(watched.look(Duration::ZERO), (None, Some(SETTLE)));
        watched.write("newest");
        assert_eq!(watched.look(SETTLE), (None, Some(SETTLE * 2)));
        let changed = Some(FileChange::Changed);
        assert_eq!(watched.look(SETTLE * 2), (changed, None));
        assert_eq!(watched.look(SETTLE * 3), (None, None));
    }

    #[test]
    fn a_group_without_files_is_removed() {
        let mut watched = Watched::new();
        fs::remove_file(watched.folder.path().join("file")).unwrap();
        watched.look(Duration::ZERO);
        // Not whole either, so it waits for `give_up`.
        let removed = Some(FileChange::Removed);
        assert_eq!(watched.look(GIVE_UP), (removed, None));
        assert_eq!(watched.look(GIVE_UP * 2), (None, None));
    }

    #[test]
    fn a_group_that_is_not_whole_is_reported_in_the_end() {
        let mut watched = Watched::new();
        watched.write("half");
        watched.look(Duration::ZERO);
        let half = SETTLE / 2;
        assert_eq!(watched.look(SETTLE), (None, Some(SETTLE + half)));
        assert_eq!(watched.look(GIVE_UP).0, Some(FileChange::Changed));
    }

    #[cfg(unix)]
    #[test]
    fn files_that_cannot_be_looked_at_count_as_unchanged() {
        let mut watched = Watched::new();
        let folder = watched.folder.path();
        let away = folder.with_extension("away");
        // A link to itself: the system cannot say whether the folder is there.
        fs::rename(folder, &away).unwrap();
        std::os::unix::fs::symlink(folder, folder).unwrap();
        for after in [0, 1, 2].map(|n| GIVE_UP * n) {
            assert_eq!(watched.look(after), (None, None));
        }
        let folder = watched.folder.path();
        fs::remove_file(folder).unwrap();
        fs::rename(&away, folder).unwrap();
        watched.write("newer");
        watched.look(GIVE_UP * 3);
        assert_eq!(watched.look(GIVE_UP * 4).0, Some(FileChange::Changed));
    }

    #[test]
    fn a_file_that_cannot_be_read_yet_is_reported_later() {
        let mut watched = Watched::new();
        watched.write("locked");
        watched.look(Duration::ZERO);
        assert_eq!(watched.look(SETTLE), (None, None), "until the next poll");
        watched.write("free");
        watched.look(GIVE_UP);
        assert_eq!(watched.look(GIVE_UP + SETTLE).0, Some(FileChange::Changed));
    }
}
