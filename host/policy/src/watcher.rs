//! Reports when a policy in the policies directory changed and is whole.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::artifacts::Artifacts;
use crate::files::{
    FileChange, FileError, FileGroups, FileStamps, FileWatcher, WatchError, WatchOptions,
    WatchedFolder, is_gone, is_hidden, open_regular,
};
use crate::settings;
use crate::wasm_shape::{WasmShape, shape_of};

/// A change of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyFileEvent {
    /// `NAME.wasm`, its settings `NAME.toml`, or one of its artifacts in `NAME/` is new or
    /// changed; this is the path of `NAME.wasm`.
    Changed(PathBuf),
    /// `NAME.wasm` is gone.
    Removed(PathBuf),
}

/// Watches the policies of one directory until dropped.
pub struct PolicyWatcher {
    _files: FileWatcher,
}

/// The policies of a directory: each `NAME.wasm` with its settings and artifacts is one group,
/// named by the path of `NAME.wasm`.
struct PolicyFiles {
    dir: PathBuf,
}

// === impl PolicyWatcher ===

impl PolicyWatcher {
    /// Watches the policies in `dir`. Policies that exist already are not reported. `report` is
    /// called on the watcher's own thread, one event at a time.
    ///
    /// # Errors
    /// The directory does not exist or cannot be read, or the system gives no thread.
    pub fn start(
        dir: &Path,
        options: &WatchOptions,
        mut report: impl FnMut(PolicyFileEvent) + Send + 'static,
    ) -> Result<Self, WatchError> {
        let dir = dir.to_owned();
        let report = move |policy, change| {
            report(match change {
                FileChange::Changed => PolicyFileEvent::Changed(policy),
                FileChange::Removed => PolicyFileEvent::Removed(policy),
            });
        };
        let files = FileWatcher::start("policy-watcher", PolicyFiles { dir }, options, report)?;
        Ok(Self { _files: files })
    }
}

// === impl PolicyFiles ===

impl FileGroups for PolicyFiles {
    type Key = PathBuf;

    fn folders(&self) -> Vec<WatchedFolder> {
        vec![WatchedFolder {
            path: self.dir.clone(),
            with_subfolders: true,
        }]
    }

    /// Every `NAME.wasm` that is not hidden.
    fn keys(&self) -> io::Result<BTreeSet<PathBuf>> {
        let mut policies = BTreeSet::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let path = entry.path();
            if !is_hidden(&entry.file_name()) && path.extension().is_some_and(|e| e == "wasm") {
                policies.insert(path);
            }
        }
        Ok(policies)
    }

    /// Settings and artifacts without a component are no policy.
    fn stamps(&self, policy: &PathBuf) -> io::Result<FileStamps> {
        let mut stamps = FileStamps::default();
        if stamps.add_file(policy)? {
            stamps.add_file(&settings::file_of(policy))?;
            stamps.add_folder(&Artifacts::folder_of(policy), true)?;
        }
        Ok(stamps)
    }

    /// The end of the component is there. A component that will never be readable counts as whole,
    /// so that the loader reports why.
    fn is_whole(&self, policy: &PathBuf) -> io::Result<bool> {
        let shape = open_regular(policy).and_then(|(mut file, _)| Ok(shape_of(&mut file)?));
        match shape {
            Ok(shape) => Ok(shape != WasmShape::Partial),
            Err(FileError::Io(error)) if !is_gone(&error) => {
                let reason = format!("{}: {error}", policy.display());
                Err(io::Error::new(error.kind(), reason))
            }
            Err(_) => Ok(true),
        }
    }
}
