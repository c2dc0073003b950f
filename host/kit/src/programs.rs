//! Programs whose names end in a version, such as `clang-19`.

use std::fs;
use std::path::{Path, PathBuf};

/// The newest `NAME-N` in a folder, with its version N.
pub(crate) fn newest_version(folder: &Path, name: &str) -> Option<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let versions = entries.filter_map(|entry| {
        let file = entry.file_name();
        let version = file.to_str()?.strip_prefix(name)?.strip_prefix('-')?;
        Some((version.parse().ok()?, entry.path()))
    });
    versions.max()
}
