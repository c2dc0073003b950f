//! Compiled code kept between runs of the program. An entry is found by the content of its
//! component and the engine that compiled it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wasmtime::component::Component;

use crate::engine::PolicyEngine;
use crate::history::ContentHash;

/// Most files in a cache. The oldest are removed first.
const ENTRIES_MAX: usize = 64;
const EXTENSION: &str = "cwasm";

/// A directory of compiled code to which only this user may write.
#[derive(Clone, Debug)]
pub struct CodeCache {
    dir: PathBuf,
}

/// Why a directory is not used as a cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The directory cannot be made or written to.
    #[error("compiled-code cache {}: {source}", dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Other users may write to the directory. Compiled code is run without a check, so only this
    /// user may.
    #[error(
        "compiled-code cache {}: {reason}; use a directory to which only this user may write",
        dir.display()
    )]
    Untrusted {
        /// The directory.
        dir: PathBuf,
        /// The permission or owner at fault.
        reason: &'static str,
    },
}

// === impl CodeCache ===

impl CodeCache {
    /// Opens a cache. Makes the directory if it does not exist.
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

    /// The compiled component, if the cache has it and it fits the engine.
    pub(crate) fn find(&self, engine: &PolicyEngine, code: ContentHash) -> Option<Component> {
        let path = self.path(engine, code);
        if !path.is_file() {
            return None;
        }
        #[allow(
            unsafe_code,
            reason = "wasmtime cannot check compiled code, so loading it is unsafe by its contract"
        )]
        // SAFETY: the bytes must come from wasmtime's own serialisation, unchanged. The file is in
        // a directory to which only this user can write (checked in `open`). Only `keep` makes
        // files of such a name, whole, by an atomic rename, and nothing writes to them afterwards.
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

    /// Keeps compiled code. A failure is logged and does not fail the load.
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
        // On disk before the rename: a crash leaves no half-written file under its name.
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
        // Stable within a build of the host. An entry is of no use to another build: wasmtime
        // checks the compatibility again.
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

/// The permission or owner that lets other users write to the directory, if any.
#[cfg(unix)]
fn written_by_others(dir: &Path) -> io::Result<Option<&'static str>> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = dir.metadata()?;
    if metadata.permissions().mode() & 0o022 != 0 {
        return Ok(Some("group or others may write to it"));
    }
    // A new file belongs to this process's user: the shortest way to the user id.
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
    fn a_cache_makes_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("a/b");
        CodeCache::open(&inside).unwrap();
        assert!(inside.is_dir());
    }

    #[test]
    fn a_cache_keeps_no_more_than_its_limit() {
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
