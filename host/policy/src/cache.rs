//! Compiled code kept between runs of the program. An entry is found by the content of its
//! component and the engine that compiled it.
//!
//! Compiled code is run as it is, so an entry is used only if no other user can have written it and
//! its checksum holds. A cache that cannot be used is logged and costs the time to compile.

mod entry;
mod loaded;
mod trust;

pub use self::loaded::LoadedCode;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wasmtime::component::Component;

use crate::engine::PolicyEngine;
use crate::history::ContentHash;
use entry::EntryError;
use trust::TrustedFolder;

/// Most files in a cache. The oldest are removed first.
const ENTRIES_MAX: usize = 64;
const EXTENSION: &str = "cwasm";

/// A folder of compiled code to which only this user may write.
#[derive(Clone, Debug)]
pub(crate) struct CodeCache {
    dir: PathBuf,
}

// === impl CodeCache ===

impl CodeCache {
    /// A cache in this folder, which is made when it is first needed.
    pub(crate) fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The compiled component, if the cache has it and it fits the engine.
    pub(crate) fn find(&self, engine: &PolicyEngine, code: ContentHash) -> Option<Component> {
        match self.read(engine, code) {
            Ok(component) => Some(component),
            Err(EntryError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let path = self.dir.join(name(engine, code));
                tracing::warn!(path = %path.display(), "compiled code is not used: {error}");
                None
            }
        }
    }

    fn read(&self, engine: &PolicyEngine, code: ContentHash) -> Result<Component, EntryError> {
        let folder = TrustedFolder::open(&self.dir)?;
        let bytes = folder.read(&name(engine, code))?;
        let compiled = entry::open(&bytes, compatibility(engine), code)?;
        #[allow(
            unsafe_code,
            reason = "wasmtime cannot check compiled code, so loading it is unsafe by its contract"
        )]
        // SAFETY: the bytes must come from wasmtime's own serialisation, unchanged. They are in
        // memory, where no other process changes them. Their checksum shows that they are those
        // which `keep` wrote. The file belonged to this user or to root, and neither it nor its
        // folder could be written by others (`TrustedFolder`), so that no other user made a file
        // with a checksum that holds. wasmtime itself refuses another version or configuration.
        let component = unsafe { Component::deserialize(engine.wasmtime(), compiled) };
        component.map_err(|error| EntryError::Refused(format!("{error:#}")))
    }

    /// Keeps compiled code. A failure is logged and does not fail the load.
    pub(crate) fn keep(&self, engine: &PolicyEngine, code: ContentHash, component: &Component) {
        let path = self.dir.join(name(engine, code));
        let kept = self.write(engine, code, component, &path);
        if let Err(error) = kept {
            tracing::warn!(path = %path.display(), %error, "compiled code was not kept");
        }
    }

    fn write(
        &self,
        engine: &PolicyEngine,
        code: ContentHash,
        component: &Component,
        path: &Path,
    ) -> Result<(), EntryError> {
        trust::make_private(&self.dir)?;
        TrustedFolder::open(&self.dir)?;
        let compiled = component.serialize().map_err(io::Error::other)?;
        let header = entry::header(&compiled, compatibility(engine), code);
        self.replace(path, &[&header, &compiled])?;
        Ok(self.prune()?)
    }

    fn replace(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
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
                // Another process may have removed it.
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                entries.push((metadata.modified()?, entry.path()));
            }
        }
        entries.sort();
        let excess = entries.len().saturating_sub(ENTRIES_MAX);
        for (_, path) in &entries[..excess] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }
}

fn name(engine: &PolicyEngine, code: ContentHash) -> String {
    let engine = compatibility(engine);
    format!("{}-{engine:016x}.{EXTENSION}", code.to_hex())
}

/// Stable within a build of the host. An entry is of no use to another build: wasmtime checks the
/// compatibility again.
fn compatibility(engine: &PolicyEngine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine
        .wasmtime()
        .precompile_compatibility_hash()
        .hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::engine::EngineOptions;

    /// A component with nothing in it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    struct TestBed {
        _root: tempfile::TempDir,
        cache: CodeCache,
        engine: PolicyEngine,
        code: ContentHash,
    }

    impl TestBed {
        /// With the code of one component in it.
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let engine = PolicyEngine::deterministic(&EngineOptions::default()).unwrap();
            let this = Self {
                cache: CodeCache::new(root.path().join("a/b")),
                code: ContentHash::of(&[EMPTY]),
                _root: root,
                engine,
            };
            let component = Component::from_binary(this.engine.wasmtime(), EMPTY).unwrap();
            this.cache.keep(&this.engine, this.code, &component);
            assert!(this.is_found());
            this
        }

        fn is_found(&self) -> bool {
            self.cache.find(&self.engine, self.code).is_some()
        }

        fn file(&self) -> PathBuf {
            self.cache.dir.join(name(&self.engine, self.code))
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found_before_the_code_is_used() {
        let test_bed = TestBed::new();
        let whole = fs::read(test_bed.file()).unwrap();
        let step = whole.len() / 60;
        for at in (0..whole.len()).step_by(step).chain([8, 39, 40]) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(test_bed.file(), flipped).unwrap();
            assert!(!test_bed.is_found(), "byte {at}");
        }
        for cut in [0, 1, 39, 40, whole.len() - 1] {
            fs::write(test_bed.file(), &whole[..cut]).unwrap();
            assert!(!test_bed.is_found(), "{cut} bytes");
        }
        fs::write(test_bed.file(), whole).unwrap();
        assert!(test_bed.is_found());
    }

    #[test]
    fn code_of_another_component_is_not_used_under_this_name() {
        let test_bed = TestBed::new();
        let other = ContentHash::of(&[b"other"]);
        let moved = test_bed.cache.dir.join(name(&test_bed.engine, other));
        fs::rename(test_bed.file(), moved).unwrap();
        assert!(test_bed.cache.find(&test_bed.engine, other).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn code_that_others_may_have_written_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let test_bed = TestBed::new();
        let file = test_bed.file();
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        for mode in [0o666, 0o620, 0o602] {
            allow(&file, mode);
            assert!(!test_bed.is_found(), "{mode:o}");
        }
        allow(&file, 0o644);
        assert!(test_bed.is_found());
        for mode in [0o777, 0o720] {
            allow(&test_bed.cache.dir, mode);
            assert!(!test_bed.is_found(), "folder {mode:o}");
        }
        allow(&test_bed.cache.dir, 0o700);
        let elsewhere = test_bed.cache.dir.join("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        symlink(&elsewhere, &file).unwrap();
        assert!(!test_bed.is_found(), "a link");
    }

    #[test]
    fn a_cache_that_cannot_be_used_is_no_error() {
        let test_bed = TestBed::new();
        let file = test_bed.cache.dir.join("file");
        fs::write(&file, "no folder").unwrap();
        let component = Component::from_binary(test_bed.engine.wasmtime(), EMPTY).unwrap();
        let cache = CodeCache::new(file.join("below"));
        cache.keep(&test_bed.engine, test_bed.code, &component);
        assert!(cache.find(&test_bed.engine, test_bed.code).is_none());
    }

    #[test]
    fn a_cache_keeps_no_more_than_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let cache = CodeCache::new(dir.path());
        for i in 0..ENTRIES_MAX + 3 {
            cache
                .replace(&cache.dir.join(format!("{i}.{EXTENSION}")), &[b"x"])
                .unwrap();
        }
        cache.prune().unwrap();
        assert_eq!(fs::read_dir(&cache.dir).unwrap().count(), ENTRIES_MAX);
    }
}
