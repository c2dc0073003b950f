//! The files of a version, to be sent to other machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::artifacts::Artifacts;
use crate::files::{is_hidden, read_regular};
use crate::history::PolicyVersion;
use crate::settings;
use crate::store::{COMPONENT, StoreError};

/// Most bytes of a version that is sent.
pub const PACKED_BYTES_MAX: u64 = 16 << 20;

/// The artifacts in the names of files.
const ARTIFACTS: &str = "policy/";

/// Component, settings and artifacts by the names that they have in a
/// [`VersionStore`](crate::VersionStore): `policy.wasm`, `policy.toml`, `policy/...`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedVersion(pub BTreeMap<String, Vec<u8>>);

// === impl PackedVersion ===

impl PackedVersion {
    /// Reads the files of a version.
    ///
    /// # Errors
    /// A file cannot be read, has a name that is not UTF-8, or all have more than [`PACKED_BYTES_MAX`].
    pub fn read(version: &PolicyVersion) -> Result<Self, StoreError> {
        let place = version.place();
        let mut packed = Self::default();
        let mut room = PACKED_BYTES_MAX;
        let own = settings::file_of(place);
        if own.is_file() {
            packed.add(settings_name(), &own, &mut room)?;
        }
        let folder = Artifacts::folder_of(place);
        let artifacts = Artifacts::of(place).map_err(StoreError::of(&folder))?;
        for path in artifacts.paths() {
            let name = path.strip_prefix(&folder).unwrap_or(path).to_str();
            let name = name.ok_or_else(|| refused(path, "a name in UTF-8 is needed"))?;
            packed.add(format!("{ARTIFACTS}{name}"), path, &mut room)?;
        }
        if version.bytes.len() as u64 > room {
            return Err(refused(place, &format!("{TOO_LARGE} {PACKED_BYTES_MAX}")));
        }
        let component = (COMPONENT.to_owned(), version.bytes.to_vec());
        packed.0.extend([component]);
        Ok(packed)
    }

    fn add(&mut self, name: String, path: &Path, room: &mut u64) -> Result<(), StoreError> {
        let bytes = read_regular(path, *room).map_err(StoreError::unread(path))?;
        *room -= bytes.len() as u64;
        self.0.insert(name, bytes);
        Ok(())
    }

    /// Writes them into a folder as the policy `name`; the file of the component.
    ///
    /// # Errors
    /// There is no component, a name leads out of the folder, or a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> Result<PathBuf, StoreError> {
        let component = folder.join(format!("{name}.wasm"));
        for (packed, bytes) in &self.0 {
            let path = match packed.strip_prefix(ARTIFACTS) {
                None if packed == COMPONENT => component.clone(),
                None if *packed == settings_name() => settings::file_of(&component),
                Some(artifact) if is_inside(artifact) => {
                    Artifacts::folder_of(&component).join(artifact)
                }
                _ => return Err(refused(Path::new(packed), "a version has no such file")),
            };
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(StoreError::of(folder))?;
            }
            fs::write(&path, bytes).map_err(StoreError::of(&path))?;
        }
        match self.0.contains_key(COMPONENT) {
            true => Ok(component),
            false => Err(refused(Path::new(COMPONENT), "the version lacks it")),
        }
    }
}

const TOO_LARGE: &str = "with settings and artifacts the version has more bytes than can be sent,";

fn settings_name() -> String {
    settings::file_of(Path::new(COMPONENT))
        .display()
        .to_string()
}

/// Names of files in a folder, none of them hidden.
fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let is_plain = |part| matches!(part, Component::Normal(name) if !is_hidden(name));
    !name.is_empty() && parts.all(is_plain)
}

fn refused(path: &Path, reason: &str) -> StoreError {
    StoreError {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn version(dir: &Path) -> PolicyVersion {
        let file = dir.join("live.wasm");
        fs::create_dir_all(dir.join("live/sub")).unwrap();
        fs::write(&file, [1; 8]).unwrap();
        fs::write(dir.join("live.toml"), "level = 1\n").unwrap();
        fs::write(dir.join("live/sub/table.bin"), [2, 3]).unwrap();
        let settings = settings::read(&dir.join("live.toml")).unwrap();
        PolicyVersion::new(&file, vec![1; 8], settings)
    }

    #[test]
    fn a_version_is_the_same_elsewhere() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let sent = version(here.path());
        let packed = PackedVersion::read(&sent).unwrap();
        let names: Vec<_> = packed.0.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["policy.toml", "policy.wasm", "policy/sub/table.bin"]
        );
        let file = packed.write(there.path(), "shared").unwrap();
        assert_eq!(file, there.path().join("shared.wasm"));
        let settings = settings::read(&settings::file_of(&file)).unwrap();
        let got = PolicyVersion::new(&file, fs::read(&file).unwrap(), settings);
        assert_eq!(got.hash, sent.hash);
    }

    #[test]
    fn files_outside_of_a_version_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let packed = |name: &str| {
            let files = [(COMPONENT, vec![1]), (name, vec![2])];
            PackedVersion(files.map(|(name, bytes)| (name.to_owned(), bytes)).into())
        };
        for name in [
            "policy/../../x",
            "policy//x",
            "policy/.x",
            "policy/",
            "x",
            "",
        ] {
            let error = packed(name).write(dir.path(), "a").unwrap_err();
            let reason = error.to_string();
            assert!(reason.ends_with("no such file"), "{name}: {reason}");
        }
        let error = PackedVersion::default().write(dir.path(), "a").unwrap_err();
        assert_eq!(error.to_string(), "policy.wasm: the version lacks it");
    }

    #[test]
    fn a_version_that_is_too_large_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut sent = version(dir.path());
        sent.bytes = vec![0; PACKED_BYTES_MAX as usize].into();
        let error = PackedVersion::read(&sent).unwrap_err();
        assert!(error.reason.contains("16777216"), "{error}");
    }
}
