//! Compiled code kept between runs, found by the component's content and the engine that
//! compiled it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wasmtime::component::Component;

use crate::engine::PolicyEngine;
use crate::history::ContentHash;

/// Files kept; the oldest go first.
const ENTRIES_MAX: usize = 64;
const EXTENSION: &str = "cwasm";

/// A directory of compiled code that nobody else may write to.
#[derive(Clone, Debug)]
pub struct CodeCache {
    dir: PathBuf,
}

/// Why a directory is not used as a cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made or written to.
    #[error("compiled-code cache {}: {source}", dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Compiled code is run as it is found, so its place must be ours alone.
    #[error("compiled-code cache {}: {reason}", dir.display())]
    Untrusted {
        /// The directory.
        dir: PathBuf,
        /// Who else may write there.
        reason: &'static str,
    },
}

// === impl CodeCache ===

impl CodeCache {
    /// Opens a cache, making the directory when there is none.
    ///
    /// # Errors
    /// The directory cannot be made or written to, or others may write to it.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let dir = dir.into();
        let io = |source| CacheError::Io {
            dir: dir.clone(),
            source,
        };
        make_private(&dir).map_err(io)?;
        if let Some(reason) = written_by_others(&dir).map_err(io)? {
            return Err(CacheError::Untrusted { dir, reason });
        }
        Ok(Self { dir })
    }

    /// The compiled component, if it is here and fits the engine.
    pub(crate) fn find(&self, engine: &PolicyEngine, code: ContentHash) -> Option<Component> {
        let path = self.path(engine, code);
        if !path.is_file() {
            return None;
        }
        // SAFETY: the bytes must come from wasmtime's own serialisation, unchanged. The file
        // is in a directory that only this user can write to (checked in `open`), under a
        // name that only `keep` makes, written whole by an atomic rename and never again.
        // wasmtime itself refuses files of another version or configuration.
        let found = unsafe { Component::deserialize_file(engine.wasmtime(), &path) };
        match found {
            Ok(component) => Some(component),
            Err(error) => {
                tracing::warn!(path = %path.display(), "compiled code is not usable: {error:#}");
                None
            }
        }
    }

    /// Keeps compiled code. That it could not is worth a line, not a failed load.
    pub(crate) fn keep(&self, engine: &PolicyEngine, code: ContentHash, component: &Component) {
        let path = self.path(engine, code);
        let kept = component
            .serialize()
            .map_err(io::Error::other)
            .and_then(|bytes| self.write(&path, &bytes))
            .and_then(|()| self.prune());
        if let Err(error) = kept {
            tracing::warn!(path = %path.display(), %error, "compiled code was not kept");
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        file.write_all(bytes)?;
        // On disk before it has its name: a crash leaves no half of a file there.
        file.as_file().sync_data()?;
        file.persist(path)?;
        Ok(())
    }

    fn prune(&self) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|e| e == EXTENSION) {
                entries.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        entries.sort();
        let excess = entries.len().saturating_sub(ENTRIES_MAX);
        for (_, path) in &entries[..excess] {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }

    fn path(&self, engine: &PolicyEngine, code: ContentHash) -> PathBuf {
        // Stable within a build of the host, which is as long as an entry can live: wasmtime
        // checks compatibility again by itself.
        let mut hasher = DefaultHasher::new();
        engine
            .wasmtime()
            .precompile_compatibility_hash()
            .hash(&mut hasher);
        let engine = hasher.finish();
        self.dir
            .join(format!("{}-{engine:016x}.{EXTENSION}", code.to_hex()))
    }
}

#[cfg(unix)]
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

#[cfg(not(unix))]
fn make_private(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)
}

/// Why others could put code into the directory, if they could.
#[cfg(unix)]
fn written_by_others(dir: &Path) -> io::Result<Option<&'static str>> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = dir.metadata()?;
    if metadata.permissions().mode() & 0o022 != 0 {
        return Ok(Some("group or others may write to it"));
    }
    // A new file belongs to us: the shortest way to our own user id.
    let ours = tempfile::NamedTempFile::new_in(dir)?;
    if ours.as_file().metadata()?.uid() != metadata.uid() {
        return Ok(Some("it belongs to another user"));
    }
    Ok(None)
}

#[cfg(not(unix))]
fn written_by_others(dir: &Path) -> io::Result<Option<&'static str>> {
    tempfile::NamedTempFile::new_in(dir).map(|_| None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let error = CodeCache::open(dir.path()).unwrap_err();
        assert!(matches!(error, CacheError::Untrusted { .. }), "{error}");
    }

    #[test]
    fn makes_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("a/b");
        CodeCache::open(&inside).unwrap();
        assert!(inside.is_dir());
    }

    #[test]
    fn keeps_no_more_than_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let cache = CodeCache::open(dir.path().join("cache")).unwrap();
        for i in 0..ENTRIES_MAX + 3 {
            cache
                .write(&cache.dir.join(format!("{i}.{EXTENSION}")), b"x")
                .unwrap();
        }
        cache.prune().unwrap();
        assert_eq!(std::fs::read_dir(&cache.dir).unwrap().count(), ENTRIES_MAX);
    }
}
