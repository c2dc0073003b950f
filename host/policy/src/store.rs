//! The versions of one policy on disk: component, settings and artifacts together, so that a rollback
//! restores all three, also after a restart.
//!
//! A version is a folder `NUMBER-HASH` with `policy.wasm`, `policy.toml`, the folder `policy` and
//! `version.json`. It is made under a hidden name and renamed, so that it is whole or absent. The
//! highest number served last.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, TempDir};

use crate::artifacts::Artifacts;
use crate::files::{FileError, is_hidden, read_regular, read_regular_text};
use crate::history::PolicyVersion;
use crate::limits::COMPONENT_BYTES_MAX;
use crate::settings;

/// Name of the files of a version.
pub(crate) const COMPONENT: &str = "policy.wasm";

/// The facts that are not in the other files.
const FACTS: &str = "version.json";

/// Longest file of facts: it holds the settings.
const FACTS_BYTES_MAX: u64 = 4 << 20;

/// Largest artifact, and largest sum of them.
const ARTIFACT_BYTES_MAX: u64 = 1 << 30;

/// The versions of one policy on disk.
#[derive(Clone, Debug)]
pub struct VersionStore {
    folder: PathBuf,
    versions_max: usize,
}

/// A version that cannot be kept or restored.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct StoreError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's reason.
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
struct Facts {
    /// The whole content hash.
    hash: String,
    /// The file that it was loaded from.
    file: PathBuf,
    /// `name@version`.
    label: String,
    /// The settings that the policy got, JSON: those of the configuration override the file's.
    settings: String,
}

// === impl StoreError ===

impl StoreError {
    pub(crate) fn of(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |error| Self {
            path: path.to_owned(),
            reason: error.to_string(),
        }
    }

    pub(crate) fn unread(path: &Path) -> impl Fn(FileError) -> Self + '_ {
        |error| Self {
            path: path.to_owned(),
            reason: error.to_string(),
        }
    }
}

// === impl VersionStore ===

impl VersionStore {
    /// The store in a folder, which is made if it does not exist. It keeps at most `versions_max`
    /// versions.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: PathBuf, versions_max: usize) -> Result<Self, StoreError> {
        fs::create_dir_all(&folder).map_err(StoreError::of(&folder))?;
        Ok(Self {
            folder,
            versions_max,
        })
    }

    /// Keeps a version, whose files lie where it was loaded from, as the latest, and names its copy. Older
    /// versions beyond the limit are removed.
    ///
    /// # Errors
    /// A file cannot be copied, or has changed since the version was loaded: it is about to be loaded
    /// again.
    pub fn keep(&self, version: &PolicyVersion) -> Result<PolicyVersion, StoreError> {
        let known = self.folders()?;
        let next = known.last().map_or(1, |(number, _)| number + 1);
        let folder = self.folder.join(format!("{next:08}-{}", version.hash));
        let has_it = |path: &Path| name_of(path).ends_with(&format!("-{}", version.hash));
        match known.iter().rposition(|(_, path)| has_it(path)) {
            Some(at) if at + 1 == known.len() => {
                return Ok(PolicyVersion {
                    copy: Some(known[at].1.join(COMPONENT)),
                    ..version.clone()
                });
            }
            Some(at) => {
                let before = &known[at].1;
                fs::rename(before, &folder).map_err(StoreError::of(before))?;
            }
            None => self.copy(version, &folder)?,
        }
        for (_, old) in self.folders()?.iter().rev().skip(self.versions_max) {
            fs::remove_dir_all(old).map_err(StoreError::of(old))?;
        }
        Ok(PolicyVersion {
            copy: Some(folder.join(COMPONENT)),
            ..version.clone()
        })
    }

    /// Every version that can be read, oldest first. Others are logged and passed over.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn versions(&self) -> Result<Vec<PolicyVersion>, StoreError> {
        let folders = self.folders()?;
        let read = folders.iter().filter_map(|(_, folder)| {
            let version = read(folder);
            version
                .inspect_err(|error| tracing::warn!(%error, "a kept policy version is passed over"))
                .ok()
        });
        Ok(read.collect())
    }

    /// The version of a whole hash, if it is kept and can be read.
    pub fn find(&self, hash: &str) -> Option<PolicyVersion> {
        let known = self.folders().ok()?;
        let digits = |path: &Path| {
            let name = name_of(path);
            let digits = name.split_once('-').map(|(_, digits)| digits.to_owned());
            digits.is_some_and(|digits| hash.starts_with(&digits))
        };
        let mut found = known.iter().rev().filter(|(_, path)| digits(path));
        found.find_map(|(_, folder)| read(folder).ok().filter(|it| it.hash.to_hex() == hash))
    }

    /// Writes the files of a kept version over those of the policy in the file `onto`. The component
    /// comes last.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn restore(&self, version: &PolicyVersion, onto: &Path) -> Result<(), StoreError> {
        let folder = onto.parent().unwrap_or_else(|| Path::new("."));
        let own = settings::file_of(version.place());
        let settings = settings::file_of(onto);
        match own.is_file() {
            true => replace(&own, &settings, folder)?,
            false => match fs::remove_file(&settings) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::of(&settings)(error));
                }
                _ => {}
            },
        }
        replace_folder(version.place(), onto, folder)?;
        replace(version.place(), onto, folder)
    }

    fn copy(&self, version: &PolicyVersion, folder: &Path) -> Result<(), StoreError> {
        let draft = TempDir::with_prefix_in(".keeping-", &self.folder);
        let draft = draft.map_err(StoreError::of(&self.folder))?;
        let component = draft.path().join(COMPONENT);
        fs::write(&component, &version.bytes).map_err(StoreError::of(&component))?;
        let settings = settings::file_of(version.place());
        if settings.is_file() {
            let copy = settings::file_of(&component);
            fs::copy(&settings, &copy).map_err(StoreError::of(&settings))?;
        }
        copy_artifacts(version.place(), &component)?;
        let copied =
            PolicyVersion::new(&component, version.bytes.to_vec(), version.settings.clone());
        if copied.hash != version.hash {
            return Err(StoreError {
                path: Artifacts::folder_of(version.place()),
                reason: "its files have changed since the policy was loaded".to_owned(),
            });
        }
        let facts = Facts {
            hash: version.hash.to_hex(),
            file: version.file.clone(),
            label: version.label.clone(),
            settings: version.settings.clone(),
        };
        let file = draft.path().join(FACTS);
        let text = serde_json::to_vec_pretty(&facts).map_err(io::Error::from);
        let written = text.and_then(|text| fs::write(&file, text));
        written.map_err(StoreError::of(&file))?;
        let draft = draft.keep();
        fs::rename(&draft, folder).map_err(StoreError::of(folder))
    }

    /// The folders of the versions with their numbers, oldest first.
    fn folders(&self) -> Result<Vec<(u64, PathBuf)>, StoreError> {
        let fail = StoreError::of(&self.folder);
        let mut folders = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(&fail)? {
            let entry = entry.map_err(&fail)?;
            if is_hidden(&entry.file_name()) {
                continue;
            }
            let path = entry.path();
            let number = name_of(&path)
                .split_once('-')
                .map(|(number, _)| number.parse());
            if let Some(Ok(number)) = number {
                folders.push((number, path));
            }
        }
        folders.sort();
        Ok(folders)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn read(folder: &Path) -> Result<PolicyVersion, StoreError> {
    let facts = folder.join(FACTS);
    let text = read_regular_text(&facts, FACTS_BYTES_MAX).map_err(StoreError::unread(&facts))?;
    let Facts {
        hash,
        file,
        label,
        settings,
    } = serde_json::from_str(&text).map_err(|error| StoreError::of(&facts)(error.into()))?;
    let copy = folder.join(COMPONENT);
    let bytes = read_regular(&copy, COMPONENT_BYTES_MAX).map_err(StoreError::unread(&copy))?;
    let version = PolicyVersion {
        label,
        file,
        copy: Some(copy.clone()),
        ..PolicyVersion::new(&copy, bytes, settings)
    };
    if version.hash.to_hex() != hash {
        return Err(StoreError {
            path: folder.to_owned(),
            reason: format!(
                "its files have the hash {}, must be {hash}",
                version.hash.to_hex()
            ),
        });
    }
    Ok(version)
}

/// Replaces `to` by a copy of `from`; a reader sees the old file or the new one.
fn replace(from: &Path, to: &Path, folder: &Path) -> Result<(), StoreError> {
    let fail = StoreError::of(to);
    let draft = NamedTempFile::with_prefix_in(".restoring-", folder).map_err(&fail)?;
    fs::copy(from, draft.path()).map_err(&fail)?;
    draft.persist(to).map_err(|error| fail(error.error))?;
    Ok(())
}

/// Replaces the artifacts of the policy `to` by those of `from`.
fn replace_folder(from: &Path, to: &Path, folder: &Path) -> Result<(), StoreError> {
    let own = Artifacts::folder_of(to);
    let fail = StoreError::of(&own);
    let draft = TempDir::with_prefix_in(".restoring-", folder).map_err(&fail)?;
    let copy = draft.path().join(COMPONENT);
    copy_artifacts(from, &copy)?;
    if own.is_dir() {
        fs::rename(&own, draft.path().join("old")).map_err(&fail)?;
    }
    let copied = Artifacts::folder_of(&copy);
    match copied.is_dir() {
        true => fs::rename(&copied, &own).map_err(&fail),
        false => Ok(()),
    }
}

/// Copies the artifacts of one policy next to another.
fn copy_artifacts(from: &Path, to: &Path) -> Result<(), StoreError> {
    let (source, target) = (Artifacts::folder_of(from), Artifacts::folder_of(to));
    let files = Artifacts::of(from).map_err(StoreError::of(&source))?;
    let mut room = ARTIFACT_BYTES_MAX;
    for path in files.paths() {
        let copy = target.join(path.strip_prefix(&source).unwrap_or(path));
        let bytes = read_regular(path, room).map_err(StoreError::unread(path))?;
        room -= bytes.len() as u64;
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder).map_err(StoreError::of(folder))?;
        }
        fs::write(&copy, bytes).map_err(StoreError::of(&copy))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A policy's files; the byte tells versions apart.
    fn write(policy: &Path, byte: u8, has_settings: bool) -> PolicyVersion {
        let folder = Artifacts::folder_of(policy);
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(policy, [byte; 8]).unwrap();
        fs::write(folder.join("sub/table.bin"), [byte, 1]).unwrap();
        fs::write(folder.join(".hidden"), [9]).unwrap();
        let file = settings::file_of(policy);
        if has_settings {
            fs::write(&file, format!("level = {byte}\n")).unwrap();
        } else {
            let _ = fs::remove_file(&file);
        }
        let settings = settings::read(&file).unwrap();
        PolicyVersion {
            label: format!("name@{byte}"),
            ..PolicyVersion::new(policy, vec![byte; 8], settings)
        }
    }

    fn labels(store: &VersionStore) -> Vec<String> {
        let versions = store.versions().unwrap();
        versions.into_iter().map(|version| version.label).collect()
    }

    #[test]
    fn code_settings_and_artifacts_are_restored_together() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("live.wasm");
        let store = VersionStore::open(dir.path().join(".versions/main"), 3).unwrap();
        let first = write(&live, 1, true);
        store.keep(&first).unwrap();
        let second = write(&live, 2, false);
        store.keep(&second).unwrap();
        // As after a restart.
        let store = VersionStore::open(dir.path().join(".versions/main"), 3).unwrap();
        assert_eq!(labels(&store), ["name@1", "name@2"]);
        let kept = store.versions().unwrap();
        assert_eq!(kept[0].hash, first.hash);

        store.restore(&kept[0], &live).unwrap();
        let settings = settings::read(&settings::file_of(&live)).unwrap();
        let now = PolicyVersion::new(&live, fs::read(&live).unwrap(), settings);
        assert_eq!(now.hash, first.hash);
        store.restore(&kept[1], &live).unwrap();
        assert!(
            !settings::file_of(&live).exists(),
            "the second one has no settings"
        );
        assert_eq!(
            fs::read(dir.path().join("live/sub/table.bin")).unwrap(),
            [2, 1]
        );
        let left = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 3, "live.wasm, live and .versions");
    }

    #[test]
    fn a_version_that_serves_again_is_the_latest_and_the_oldest_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("live.wasm");
        let store = VersionStore::open(dir.path().join("versions"), 2).unwrap();
        let versions: Vec<_> = (1..=2)
            .map(|byte| store.keep(&write(&live, byte, true)).unwrap())
            .collect();
        store.keep(&versions[0]).unwrap();
        assert_eq!(labels(&store), ["name@2", "name@1"]);
        store.keep(&write(&live, 3, true)).unwrap();
        assert_eq!(labels(&store), ["name@1", "name@3"]);
    }

    #[test]
    fn a_version_whose_files_were_changed_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("live.wasm");
        let store = VersionStore::open(dir.path().join("versions"), 2).unwrap();
        let kept = store.keep(&write(&live, 1, true)).unwrap();
        store.keep(&write(&live, 2, true)).unwrap();
        let table = Artifacts::folder_of(kept.place()).join("sub/table.bin");
        fs::write(table, [7]).unwrap();
        assert_eq!(labels(&store), ["name@2"]);
    }

    #[test]
    fn files_that_changed_since_the_load_are_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("live.wasm");
        let store = VersionStore::open(dir.path().join("versions"), 2).unwrap();
        let loaded = write(&live, 1, true);
        fs::write(dir.path().join("live/sub/table.bin"), [7]).unwrap();
        let error = store.keep(&loaded).unwrap_err();
        assert!(error.reason.contains("have changed since"), "{error}");
        assert!(labels(&store).is_empty());
    }
}
