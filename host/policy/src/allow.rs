//! The list of components that may be loaded, by their SHA-256.
//!
//! Lines are those of `sha256sum`: the hash, then a name, which is not compared, because a version
//! serves under several names: its own, and that of its pool's policy.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::files::{FileError, read_regular_text};

/// Longest list: some 10,000 components.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// A file of hashes. It is read for each load, so that a component is refused from the moment when its
/// line is gone.
#[derive(Clone, Debug)]
pub(crate) struct AllowList {
    file: PathBuf,
}

/// Why a component is refused.
#[derive(Debug, thiserror::Error)]
pub enum NotAllowed {
    /// No line has the hash.
    #[error(
        "its SHA-256 {sha256} is not in {} (policies.allow); `sha256sum {name} >> {}` allows it",
        list.display(), list.display()
    )]
    Unlisted {
        /// The hash of the component, in hexadecimal digits.
        sha256: String,
        /// The name of its file.
        name: String,
        /// The list.
        list: PathBuf,
    },
    /// The list cannot be read.
    #[error("{} (policies.allow): {error}", list.display())]
    Unreadable {
        /// The list.
        list: PathBuf,
        /// The reason.
        error: FileError,
    },
    /// A line is not one of `sha256sum`.
    #[error(
        "{}:{line} (policies.allow): `{text}` is no line of `sha256sum`: 64 hexadecimal digits, then \
         a name",
        list.display()
    )]
    Malformed {
        /// The list.
        list: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The line.
        text: String,
    },
}

// === impl AllowList ===

impl AllowList {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Checks the component of this file.
    pub(crate) fn check(&self, file: &Path, component: &[u8]) -> Result<(), NotAllowed> {
        let list = || self.file.clone();
        let text = read_regular_text(&self.file, LIST_BYTES_MAX);
        let text = text.map_err(|error| NotAllowed::Unreadable {
            list: list(),
            error,
        })?;
        let sha256 = hex(&Sha256::digest(component));
        let mut is_listed = false;
        for (line, text) in (1..).zip(text.lines()) {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let hash = hash_of(text).ok_or_else(|| NotAllowed::Malformed {
                list: list(),
                line,
                text: text.chars().take(80).collect(),
            })?;
            is_listed |= hash.eq_ignore_ascii_case(&sha256);
        }
        if is_listed {
            return Ok(());
        }
        let name = file.file_name().unwrap_or_default();
        Err(NotAllowed::Unlisted {
            sha256,
            name: name.to_string_lossy().into_owned(),
            list: list(),
        })
    }
}

/// The hash of a line. A name with a line break has a backslash in front of the hash.
fn hash_of(line: &str) -> Option<&str> {
    let line = line.strip_prefix('\\').unwrap_or(line);
    let (hash, name) = line.split_once([' ', '\t'])?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_hash && !name.trim().is_empty()).then_some(hash)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    /// `printf abc | sha256sum`.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn checked(list: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("allowed");
        fs::write(&file, list).unwrap();
        let checked = AllowList::new(file).check(Path::new("policies/next.wasm"), b"abc");
        let folder = folder.path().display().to_string();
        checked.map_err(|refused| refused.to_string().replace(&folder, "DIR"))
    }

    #[test]
    fn a_component_is_known_by_its_hash_under_any_name() {
        let upper = ABC.to_uppercase();
        for list in [
            format!("{ABC}  next.wasm\n"),
            format!(
                "# of the team\n\n{}  old.wasm\n{ABC} *other.wasm\n",
                "0".repeat(64)
            ),
            format!("{upper}  next.wasm"),
        ] {
            assert_eq!(checked(&list), Ok(()), "{list}");
        }
    }

    #[test]
    fn a_refusal_has_the_hash_the_name_and_the_way_out() {
        let refused = checked(&format!("{}  next.wasm\n", "0".repeat(64))).unwrap_err();
        assert_eq!(
            refused,
            format!(
                "its SHA-256 {ABC} is not in DIR/allowed (policies.allow); \
                 `sha256sum next.wasm >> DIR/allowed` allows it"
            )
        );
        assert!(checked("").unwrap_err().contains(ABC));
    }

    #[test]
    fn a_list_that_is_wrong_allows_nothing() {
        for line in [&ABC[1..], ABC, "next.wasm", "  x"] {
            let refused = checked(&format!("{ABC}  next.wasm\n{line}\n")).unwrap_err();
            assert!(
                refused.starts_with("DIR/allowed:2 (policies.allow): `"),
                "{refused}"
            );
        }
        let missing = AllowList::new("/no/such/list".into()).check(Path::new("a.wasm"), b"abc");
        let missing = missing.unwrap_err().to_string();
        assert_eq!(
            missing,
            "/no/such/list (policies.allow): No such file or directory (os error 2)"
        );
    }
}
