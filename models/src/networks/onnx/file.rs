//! The file of a graph, which engines may read more than once.

use std::fs::{File, Metadata};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::ModelError;
use crate::regular_file;

/// The file as it was when it was loaded. It stays open, so replacing it under its name has no
/// effect.
pub(super) struct GraphFile {
    path: PathBuf,
    file: Mutex<File>,
    before: Metadata,
}

// === impl GraphFile ===

impl GraphFile {
    pub(super) fn open(path: &Path) -> Result<Self, ModelError> {
        let failed = |source| ModelError::io(path, source);
        let file = regular_file::open(path).map_err(failed)?;
        Ok(Self {
            before: file.metadata().map_err(failed)?,
            path: path.to_path_buf(),
            file: Mutex::new(file),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes, which must be those of the first read.
    pub(super) fn read(&self) -> Result<Vec<u8>, ModelError> {
        let failed = |source| ModelError::io(&self.path, source);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::with_capacity(usize::try_from(self.before.len()).unwrap_or(0));
        file.rewind().map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        let after = file.metadata().map_err(failed)?;
        let looks = |found: &Metadata| (found.len(), found.modified().ok());
        if looks(&self.before) != looks(&after) {
            let reason = "was changed in place: put another file under its name instead";
            return Err(ModelError::weights(&self.path, reason));
        }
        Ok(bytes)
    }
}
