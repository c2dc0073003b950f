//! Tables and weights that a policy may read: the files in its own folder, and no others.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::files::{FileError, FileStamps, is_gone, open_regular, read_regular};
use crate::hash::ContentHash;

/// The part of a file that is read into one buffer for all.
const SMALL_BYTES: u64 = 1 << 16;

/// The folder of one policy: `NAME/` next to `NAME.wasm`.
#[derive(Clone, Debug)]
pub(crate) struct Artifacts {
    folder: PathBuf,
    /// The largest file that a policy gets.
    max_bytes: u64,
}

/// Why a policy does not get an artifact.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArtifactError {
    NotFound,
    /// The name leads out of the folder, directly or through a link.
    Forbidden,
    /// With the file's size in bytes.
    TooLarge(u64),
    /// With the system's reason.
    Unreadable(String),
}

// === impl Artifacts ===

impl Artifacts {
    pub(crate) fn new(folder: PathBuf, max_bytes: u64) -> Self {
        Self { folder, max_bytes }
    }

    /// The folder of the policy in the file `policy`.
    pub(crate) fn folder_of(policy: &Path) -> PathBuf {
        policy.with_extension("")
    }

    /// The artifacts of the policy in the file `policy`: none without its folder. Hidden and unfinished
    /// files do not count.
    pub(crate) fn of(policy: &Path) -> std::io::Result<FileStamps> {
        let mut files = FileStamps::default();
        files.add_folder(&Self::folder_of(policy), true)?;
        Ok(files)
    }

    /// A hash of the names and contents of all artifacts; `None` without any.
    pub(crate) fn digest(policy: &Path) -> Option<ContentHash> {
        // A file that cannot be read is not in the hash, and the policy does not get it either.
        let files = Self::of(policy).ok().filter(|files| !files.is_empty())?;
        let folder = Self::folder_of(policy);
        let mut hasher = blake3::Hasher::new();
        let mut contents = Vec::new();
        for path in files.paths() {
            let name = path.strip_prefix(&folder).unwrap_or(path);
            let name = name.as_os_str().as_encoded_bytes();
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name);
            if let Ok((mut file, metadata)) = open_regular(path) {
                hasher.update(&metadata.len().to_le_bytes());
                // A reader of its own would clear a large buffer for each of many small tables.
                contents.clear();
                let _ = (&mut file).take(SMALL_BYTES).read_to_end(&mut contents);
                hasher.update(&contents);
                if metadata.len() > SMALL_BYTES {
                    let _ = hasher.update_reader(file);
                }
            }
        }
        Some(hasher.finalize().into())
    }

    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, ArtifactError> {
        let path = self.resolve(name)?;
        Ok(read_regular(&path, self.max_bytes)?)
    }

    /// The path with every link followed, when it is inside the folder.
    fn resolve(&self, name: &str) -> Result<PathBuf, ArtifactError> {
        let relative = Path::new(name);
        let plain = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !plain {
            return Err(ArtifactError::Forbidden);
        }
        let folder = self.folder.canonicalize()?;
        let path = folder.join(relative).canonicalize()?;
        if !path.starts_with(&folder) {
            return Err(ArtifactError::Forbidden);
        }
        Ok(path)
    }
}

impl From<std::io::Error> for ArtifactError {
    fn from(error: std::io::Error) -> Self {
        match is_gone(&error) {
            true => Self::NotFound,
            false => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<FileError> for ArtifactError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io(error) => error.into(),
            FileError::TooLarge { bytes, .. } => Self::TooLarge(bytes),
            FileError::NotRegular { kind: "folder" } => Self::NotFound,
            FileError::NotRegular { .. } | FileError::NotText => {
                Self::Unreadable(error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn folder() -> (tempfile::TempDir, Artifacts) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("name");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(folder.join("table.bin"), [1, 2, 3]).unwrap();
        std::fs::write(folder.join("sub/deep.bin"), [4]).unwrap();
        std::fs::write(folder.join("big.bin"), [0; 11]).unwrap();
        std::fs::write(dir.path().join("secret"), [9]).unwrap();
        (dir, Artifacts::new(folder, 10))
    }

    #[test]
    fn reads_files_in_the_folder() {
        let (_dir, artifacts) = folder();
        assert_eq!(artifacts.read("table.bin"), Ok(vec![1, 2, 3]));
        assert_eq!(artifacts.read("sub/deep.bin"), Ok(vec![4]));
        assert_eq!(artifacts.read("none.bin"), Err(ArtifactError::NotFound));
        assert_eq!(artifacts.read("sub"), Err(ArtifactError::NotFound));
        assert_eq!(artifacts.read("big.bin"), Err(ArtifactError::TooLarge(11)));
    }

    #[test]
    fn names_cannot_leave_it() {
        let (dir, artifacts) = folder();
        let absolute = dir.path().join("secret");
        for name in ["", ".", "../secret", "sub/../../secret", "/etc/passwd"] {
            assert_eq!(
                artifacts.read(name),
                Err(ArtifactError::Forbidden),
                "{name}"
            );
        }
        let absolute = absolute.to_str().unwrap();
        assert_eq!(artifacts.read(absolute), Err(ArtifactError::Forbidden));
    }

    #[cfg(unix)]
    #[test]
    fn links_cannot_leave_it() {
        use std::os::unix::fs::symlink;
        let (dir, artifacts) = folder();
        symlink(dir.path().join("secret"), artifacts.folder.join("link")).unwrap();
        symlink(dir.path(), artifacts.folder.join("up")).unwrap();
        symlink("table.bin", artifacts.folder.join("alias")).unwrap();
        assert_eq!(artifacts.read("link"), Err(ArtifactError::Forbidden));
        assert_eq!(artifacts.read("up/secret"), Err(ArtifactError::Forbidden));
        assert_eq!(artifacts.read("alias"), Ok(vec![1, 2, 3]), "inside is fine");
    }

    #[test]
    fn a_policy_without_a_folder_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(dir.path().join("none"), 10);
        assert_eq!(artifacts.read("table.bin"), Err(ArtifactError::NotFound));
    }
}
