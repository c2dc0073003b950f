//! The versions of a policy that have served, kept for rollback.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A hash of content: two versions with the same hash are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(blake3::Hash);

/// Everything needed to load a policy again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVersion {
    /// Of component and settings together. A rollback names the version by it.
    pub hash: ContentHash,
    /// Of the component only. The cache finds compiled code by it.
    pub code: ContentHash,
    /// The file it was loaded from. Its artifacts are still read from the folder next to that.
    pub file: PathBuf,
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

// === impl ContentHash ===

impl ContentHash {
    /// Hashes parts in turn, each with its length: `ab`, `c` is not `a`, `bc`.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize())
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// All 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        self.0.to_hex().to_string()
    }
}

impl fmt::Display for ContentHash {
    /// The first 12 digits: enough to tell versions apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex()[..12])
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
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
