//! JSON as profiles and what is beside them write it, whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ProfileFileError;

/// Path of what is wrong when no field is.
const WHOLE_FILE: &str = ".";

/// Reads a whole text.
///
/// # Errors
/// Names the file and the field.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ProfileFileError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = match error.path().to_string() {
            unknown if unknown == "?" => WHOLE_FILE.to_owned(),
            field => field,
        };
        ProfileFileError::field(path, field, error.into_inner().to_string())
    })?;
    json.end()
        .map_err(|error| ProfileFileError::field(path, WHOLE_FILE, error.to_string()))?;
    Ok(value)
}

pub(super) fn line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain structs of strings and integers always serialise")
}

/// One line per entry.
pub(super) fn lines<T: Serialize>(values: &[T]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = values
        .iter()
        .map(|value| format!("    {}", line(value)))
        .collect();
    format!("\n{}\n  ", lines.join(",\n"))
}

/// Writes a text beside the file, then in its place, and waits until it would survive the machine
/// going down. Makes its folder.
///
/// # Errors
/// The folder cannot be made or the file not written.
pub(super) fn save(path: &Path, text: &str) -> Result<(), ProfileFileError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| ProfileFileError::io(path, source))?;
    }
    put(path, |partial| write_synced(partial, text))
}

/// Writes a text beside the file, then in its place: a reader never sees half of it. It may be
/// lost when the machine goes down.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), ProfileFileError> {
    put(path, |partial| std::fs::write(partial, text))
}

fn put(
    path: &Path,
    write: impl FnOnce(&Path) -> std::io::Result<()>,
) -> Result<(), ProfileFileError> {
    let partial = partial_path(path);
    let written = write(&partial).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|source| {
        // Best effort: the error that matters is the one being returned.
        let _ = std::fs::remove_file(&partial);
        ProfileFileError::io(path, source)
    })
}

/// Beside the file, since a rename is atomic within one file system only. Two processes that
/// measure at once must not write into each other's.
fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
