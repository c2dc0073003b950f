//! Reading JSON with the path of the field at fault, and writing files whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ProfileFileError;

/// The path in errors that concern no single field.
const WHOLE_FILE: &str = ".";

/// Reads a whole text. Errors name the file and the field.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ProfileFileError> {
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

/// Reads a file. Errors name it and the field.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ProfileFileError> {
    let text = std::fs::read_to_string(path).map_err(|error| ProfileFileError::io(path, error))?;
    parse(path, &text)
}

/// A value on one line.
pub(crate) fn line<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("structs of strings and numbers always serialise")
}

/// The inside of an array: one value per line, indented as a field's.
pub(crate) fn lines<T: Serialize>(values: &[T]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = values
        .iter()
        .map(|value| format!("    {}", line(value)))
        .collect();
    format!("\n{}\n  ", lines.join(",\n"))
}

/// Writes a file, which survives a crash of the machine once this returns. Makes its folder.
/// Readers see the old file or the new one, never a part.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), ProfileFileError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| ProfileFileError::io(path, source))?;
    }
    write_then_rename(path, |partial| write_synced(partial, text))
}

/// Writes a file. Readers see the old file or the new one, never a part; a crash of the machine
/// may lose it.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ProfileFileError> {
    write_then_rename(path, |partial| std::fs::write(partial, text))
}

fn write_then_rename(
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

/// In the same folder, since a rename is atomic within one file system only. The process id keeps
/// two processes that measure at once apart.
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
