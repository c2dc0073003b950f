//! The versions of a policy that have served, kept for rollback.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::artifacts::Artifacts;
pub use crate::hash::ContentHash;

/// Everything needed to load a policy again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVersion {
    /// Of component, settings and artifacts together. A rollback names the version by it.
    pub hash: ContentHash,
    /// Of the component only. The cache finds compiled code by it.
    pub code: ContentHash,
    /// The file it was loaded from.
    pub file: PathBuf,
    /// The copy of that file in a [`VersionStore`](crate::VersionStore), with settings and artifacts next
    /// to it; `None` if none is kept.
    pub copy: Option<PathBuf>,
    /// `name@version`, from the policy's description.
    pub label: String,
    /// The component.
    pub bytes: Arc<[u8]>,
    /// Its settings, JSON.
    pub settings: String,
}

/// The versions that served last, up to a limit. The oldest is dropped first.
#[derive(Clone, Debug)]
pub struct PolicyHistory {
    versions_max: usize,
    /// Oldest first.
    versions: VecDeque<PolicyVersion>,
}

// === impl PolicyVersion ===

impl PolicyVersion {
    /// The version of a component in `file` with settings (JSON), and with the artifacts that lie next
    /// to the file now. It has no label yet.
    pub fn new(file: &Path, bytes: Vec<u8>, settings: String) -> Self {
        let artifacts = Artifacts::digest(file);
        let mut parts = vec![bytes.as_slice(), settings.as_bytes()];
        parts.extend(artifacts.as_ref().map(|hash| hash.as_bytes().as_slice()));
        Self {
            hash: ContentHash::of(&parts),
            code: ContentHash::of(&[&bytes]),
            file: file.to_owned(),
            copy: None,
            label: String::new(),
            bytes: bytes.into(),
            settings,
        }
    }

    /// The same with other settings (JSON).
    #[must_use]
    pub fn with_settings(&self, settings: String) -> Self {
        let bytes = self.bytes.to_vec();
        Self {
            file: self.file.clone(),
            copy: self.copy.clone(),
            label: self.label.clone(),
            ..Self::new(self.place(), bytes, settings)
        }
    }

    /// The component next to which its settings and artifacts lie.
    pub(crate) fn place(&self) -> &Path {
        self.copy.as_ref().unwrap_or(&self.file)
    }
}

// === impl PolicyHistory ===

impl PolicyHistory {
    /// Keeps at most `versions_max` versions.
    pub fn new(versions_max: usize) -> Self {
        Self {
            versions_max,
            versions: VecDeque::new(),
        }
    }

    /// Records the version that serves from now on. A version that served before becomes the
    /// latest.
    pub fn push(&mut self, version: PolicyVersion) {
        self.versions.retain(|known| known.hash != version.hash);
        self.versions.push_back(version);
        while self.versions.len() > self.versions_max {
            self.versions.pop_front();
        }
    }

    /// The version that served before the latest one.
    pub fn previous(&self) -> Option<&PolicyVersion> {
        self.versions.iter().rev().nth(1)
    }

    /// The version whose hash begins with these hexadecimal digits, if exactly one does.
    pub fn find(&self, digits: &str) -> Option<&PolicyVersion> {
        let mut found = self
            .versions
            .iter()
            .filter(|version| !digits.is_empty() && version.hash.to_hex().starts_with(digits));
        found.next().filter(|_| found.next().is_none())
    }

    /// Latest first.
    pub fn iter(&self) -> impl Iterator<Item = &PolicyVersion> {
        self.versions.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(byte: u8) -> PolicyVersion {
        PolicyVersion {
            hash: ContentHash::of(&[&[byte], b"{}"]),
            code: ContentHash::of(&[&[byte]]),
            file: PathBuf::from("name.wasm"),
            copy: None,
            label: format!("name@{byte}"),
            bytes: [byte].into(),
            settings: "{}".to_owned(),
        }
    }

    fn labels(history: &PolicyHistory) -> Vec<&str> {
        history.iter().map(|v| v.label.as_str()).collect()
    }

    #[test]
    fn the_oldest_version_is_dropped_first() {
        let mut history = PolicyHistory::new(2);
        for byte in 1..=3 {
            history.push(version(byte));
        }
        assert_eq!(labels(&history), ["name@3", "name@2"]);
        assert_eq!(history.previous(), Some(&version(2)));
    }

    #[test]
    fn a_version_that_comes_back_is_not_kept_twice() {
        let mut history = PolicyHistory::new(3);
        for byte in [1, 2, 1] {
            history.push(version(byte));
        }
        assert_eq!(labels(&history), ["name@1", "name@2"]);
    }

    #[test]
    fn a_version_is_found_by_the_beginning_of_its_hash() {
        let mut history = PolicyHistory::new(3);
        history.push(version(1));
        let hash = version(1).hash;
        assert_eq!(history.find(&hash.to_string()), Some(&version(1)));
        assert_eq!(history.find(&hash.to_hex()), Some(&version(1)));
        assert_eq!(history.find("zz"), None);
        assert_eq!(history.find(""), None);
    }

    #[test]
    fn the_hash_depends_on_the_lengths_of_its_parts() {
        assert_ne!(
            ContentHash::of(&[b"ab", b"c"]),
            ContentHash::of(&[b"a", b"bc"])
        );
    }
}
