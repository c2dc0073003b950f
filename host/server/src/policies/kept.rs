//! The versions of a pool's policy on disk, and the files that an order writes.

use std::path::{Path, PathBuf};

use switchyard_policy::files::FileStamps;
use switchyard_policy::history::ContentHash;
use switchyard_policy::{PolicyVersion, StoreError, VersionStore, settings};

/// Keeps versions, and makes one of them the pool's policy.
pub(super) struct KeptVersions {
    /// `None` if its folder cannot be used: then versions are in memory only.
    store: Option<VersionStore>,
    /// The version whose files were written last, and how they looked then.
    written: Option<(ContentHash, FileStamps)>,
}

// === impl KeptVersions ===

impl KeptVersions {
    /// Keeps at most `versions_max` versions in a folder.
    pub(super) fn open(folder: PathBuf, versions_max: usize) -> Self {
        let store = VersionStore::open(folder, versions_max);
        let store = store.inspect_err(|error| {
            tracing::warn!(%error, "policy versions are kept in memory only: a rollback ends with the server");
        });
        Self {
            store: store.ok(),
            written: None,
        }
    }

    /// The versions of earlier runs, oldest first.
    pub(super) fn versions(&self) -> Vec<PolicyVersion> {
        let versions = self.store.as_ref().map(VersionStore::versions);
        versions.and_then(Result::ok).unwrap_or_default()
    }

    /// Keeps a version that serves, and names its copies as its files. Without a store, or if it cannot
    /// be kept, it stays as it is.
    pub(super) fn keep(&self, version: PolicyVersion) -> PolicyVersion {
        let Some(store) = &self.store else {
            return version;
        };
        store.keep(&version).unwrap_or_else(|error| {
            tracing::warn!(%error, policy = version.label, "a policy version is kept in memory only");
            version
        })
    }

    /// Makes the files of a kept version those of the policy in the file `onto`.
    ///
    /// # Errors
    /// They cannot be read or written, or there is no store.
    pub(super) fn write(&mut self, version: &PolicyVersion, onto: &Path) -> Result<(), StoreError> {
        // Without a copy the files of the version may be those of another one by now.
        let (Some(store), Some(_)) = (&self.store, &version.copy) else {
            return Err(StoreError {
                path: onto.to_owned(),
                reason: "the version is kept in memory only, see the log".to_owned(),
            });
        };
        self.written = None;
        store.restore(version, onto)?;
        self.written = stamps(onto).map(|stamps| (version.hash, stamps));
        Ok(())
    }

    /// Whether the files of the policy `file`, a version of this hash, are those that were written here,
    /// whenever the watcher tells of them. The same content written again is a wish to try the policy again.
    pub(super) fn has_written(&self, hash: Option<ContentHash>, file: &Path) -> bool {
        let written = self.written.as_ref();
        written.is_some_and(|(written, then)| {
            hash == Some(*written) && stamps(file).as_ref() == Some(then)
        })
    }
}

/// How component, settings and artifacts of the policy `file` look; none if the system does not say.
fn stamps(file: &Path) -> Option<FileStamps> {
    let mut stamps = FileStamps::default();
    stamps.add_file(file).ok()?;
    stamps.add_file(&settings::file_of(file)).ok()?;
    stamps.add_folder(&file.with_extension(""), true).ok()?;
    Some(stamps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_that_were_written_here_are_known_until_they_are_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("live.wasm");
        std::fs::write(&live, [1]).unwrap();
        let mut kept = KeptVersions::open(dir.path().join(".versions"), 2);
        let version = kept.keep(PolicyVersion::new(&live, vec![1], "{}".to_owned()));
        let hash = Some(version.hash);
        assert!(!kept.has_written(hash, &live));
        kept.write(&version, &live).unwrap();
        assert!(kept.has_written(hash, &live));
        assert!(!kept.has_written(None, &live));
        // The same content in another file.
        std::fs::write(dir.path().join("new"), [1]).unwrap();
        std::fs::rename(dir.path().join("new"), &live).unwrap();
        assert!(!kept.has_written(hash, &live));
    }

    #[test]
    fn a_version_without_a_copy_does_not_pass_for_the_file_that_took_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("live.wasm");
        let mut kept = KeptVersions::open(dir.path().join(".versions"), 2);
        let first = PolicyVersion::new(&live, vec![1], "{}".to_owned());
        std::fs::write(&live, [2]).unwrap();
        let error = kept.write(&first, &live).unwrap_err();
        assert!(error.reason.contains("in memory only"), "{error}");
        assert_eq!(std::fs::read(&live).unwrap(), [2]);
    }
}
