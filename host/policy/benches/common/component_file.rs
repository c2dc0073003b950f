//! The files of built components.

use std::path::{Path, PathBuf};

/// `NAME.wasm` in the folder that the environment variable names, by default in `target/FOLDER`.
pub(crate) fn component_file(variable: &str, folder: &str, name: &str) -> PathBuf {
    let folder = std::env::var_os(variable).map_or_else(
        || {
            let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
            target.join(folder)
        },
        PathBuf::from,
    );
    folder.join(format!("{name}.wasm"))
}
