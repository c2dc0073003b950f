//! Files of the repository, found by extension.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Files below `root` with such an extension, without build outputs and hidden folders, in a
/// fixed order.
///
/// # Errors
/// Names the folder that cannot be read.
pub(crate) fn below(root: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if extension.is_some_and(&wanted) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
