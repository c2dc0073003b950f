//! A project on disk, and the files that its build makes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::contract;

/// A project on disk.
pub(super) struct ProjectFolder {
    /// Absolute.
    pub(super) path: PathBuf,
    /// Folder for components and intermediate files.
    pub(super) build: PathBuf,
    /// Keep the WASI imports of the language's library.
    pub(super) wasi: bool,
}

// === impl ProjectFolder ===

impl ProjectFolder {
    /// The folder with the contract for the bindings.
    pub(super) fn contract(&self) -> Result<PathBuf> {
        contract::of_project(&self.path, &self.build)
    }

    /// A file of the project as text.
    pub(super) fn read(&self, file: &str) -> Result<String> {
        let path = self.path.join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// The path of a file that a tool makes, in the build folder, which is made if need be.
    pub(super) fn output(&self, file: &str) -> Result<PathBuf> {
        fs::create_dir_all(&self.build)
            .with_context(|| format!("cannot make {}", self.build.display()))?;
        Ok(self.build.join(file))
    }
}

/// Reads a file that a tool made, and removes it.
pub(super) fn take(file: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    Ok(bytes)
}
