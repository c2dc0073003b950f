//! Compares what a directory holds with what was reported, and waits until it holds still.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::{PolicyFileEvent, WatchOptions};
use crate::settings;
use crate::whole::{self, Shape};

/// The policies of a directory: as reported, and as they look while they change.
pub(super) struct Settle {
    dir: PathBuf,
    debounce: Duration,
    give_up: Duration,
    reported: BTreeMap<PathBuf, Look>,
    changing: BTreeMap<PathBuf, Changing>,
}

/// How the files of a policy look from outside.
#[derive(Clone, Debug, Default, PartialEq)]
struct Look {
    component: Option<Print>,
    settings: Option<Print>,
    /// What it may read while it is configured.
    artifacts: BTreeMap<PathBuf, Print>,
}

/// Files of one policy's folder that are looked at; no policy has nearly as many.
const ARTIFACTS_MAX: usize = 10_000;

/// Changes whenever a file does, by any of the usual ways.
#[derive(Clone, Debug, PartialEq)]
struct Print {
    length: u64,
    modified: Option<SystemTime>,
    /// Tells a file from one that was moved into its place.
    inode: u64,
}

struct Changing {
    look: Look,
    /// When it began to look like this.
    since: Instant,
}

// === impl Settle ===

impl Settle {
    /// Takes what is there as reported.
    pub(super) fn of(dir: &Path, options: WatchOptions) -> io::Result<Self> {
        let reported = policies(dir)?
            .into_iter()
            .map(|policy| {
                let look = Look::at(&policy);
                (policy, look)
            })
            .collect();
        Ok(Self {
            dir: dir.to_owned(),
            debounce: options.debounce,
            give_up: options.give_up,
            reported,
            changing: BTreeMap::new(),
        })
    }

    /// Looks at everything, reports what has settled, and says when to look again.
    pub(super) fn look(
        &mut self,
        now: Instant,
        report: &mut impl FnMut(PolicyFileEvent),
    ) -> Option<Instant> {
        let present = policies(&self.dir).unwrap_or_else(|error| {
            // The directory itself may be on its way out; its policies then are as well.
            tracing::warn!(dir = %self.dir.display(), %error, "policies directory");
            BTreeSet::new()
        });
        let known = self.reported.keys().cloned();
        for policy in known.chain(present).collect::<BTreeSet<_>>() {
            self.look_at(&policy, now, report);
        }
        let again = self.changing.values().map(|changing| changing.since).min();
        again.map(|since| (since + self.debounce).max(now + self.debounce / 2))
    }

    fn look_at(&mut self, policy: &Path, now: Instant, report: &mut impl FnMut(PolicyFileEvent)) {
        let look = Look::at(policy);
        let as_reported = self.reported.get(policy).cloned().unwrap_or_default();
        if look == as_reported {
            self.changing.remove(policy);
            return;
        }
        let still_since = match self.changing.get(policy) {
            Some(changing) if changing.look == look => changing.since,
            _ => {
                let changing = Changing { look, since: now };
                self.changing.insert(policy.to_owned(), changing);
                return;
            }
        };
        let still_for = now.saturating_duration_since(still_since);
        if still_for < self.debounce || still_for < self.give_up && is_partial(policy) {
            return;
        }
        self.changing.remove(policy);
        if look.component.is_some() {
            self.reported.insert(policy.to_owned(), look);
            report(PolicyFileEvent::Changed(policy.to_owned()));
        } else {
            self.reported.remove(policy);
            report(PolicyFileEvent::Removed(policy.to_owned()));
        }
    }
}

// === impl Look ===

impl Look {
    /// Settings and artifacts without a policy are nothing.
    fn at(policy: &Path) -> Self {
        let Some(component) = Print::of(policy) else {
            return Self::default();
        };
        let mut artifacts = BTreeMap::new();
        // A policy without a folder has none.
        let _ = prints(&policy.with_extension(""), &mut artifacts);
        Self {
            component: Some(component),
            settings: Print::of(&settings::beside(policy)),
            artifacts,
        }
    }
}

// === impl Print ===

impl Print {
    fn of(file: &Path) -> Option<Self> {
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            inode: inode(&metadata),
        })
    }
}

#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_metadata: &std::fs::Metadata) -> u64 {
    0
}

/// The end of the file is missing. One that cannot be read is not ours to judge.
fn is_partial(policy: &Path) -> bool {
    File::open(policy)
        .and_then(|mut file| whole::shape(&mut file))
        .is_ok_and(|shape| shape == Shape::Partial)
}

/// Every file in a folder and those below that is not hidden.
fn prints(folder: &Path, prints: &mut BTreeMap<PathBuf, Print>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if hidden || prints.len() >= ARTIFACTS_MAX {
            continue;
        }
        let path = entry.path();
        // Links to folders are not followed: they may lead back here.
        if entry.file_type()?.is_dir() {
            self::prints(&path, prints)?;
        } else if let Some(print) = Print::of(&path) {
            prints.insert(path, print);
        }
    }
    Ok(())
}

/// Every `NAME.wasm` in the directory that is not hidden.
fn policies(dir: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut policies = BTreeSet::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let path = entry.path();
        if !hidden && path.extension().is_some_and(|e| e == "wasm") {
            policies.insert(path);
        }
    }
    Ok(policies)
}
