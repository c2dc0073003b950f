//! Facts that the card or the model's own files state.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ModelError;
use crate::regular_file;

/// The value of the card or of the model's files; an error if both differ or none has one.
pub(super) fn agree<T: Copy + PartialEq + Serialize>(
    card: &Path,
    field: &str,
    said: Option<T>,
    found: Option<T>,
    missing: &str,
) -> Result<T, ModelError> {
    let refuse = |reason: String| ModelError::field(card, format!("architecture.{field}"), reason);
    let shown = |value: T| serde_json::to_string(&value).unwrap_or_default();
    match (said, found) {
        (Some(said), Some(found)) if said != found => Err(refuse(format!(
            "{}, the model's own files say {}",
            shown(said),
            shown(found)
        ))),
        (Some(value), _) | (None, Some(value)) => Ok(value),
        (None, None) => Err(refuse(missing.to_owned())),
    }
}

/// Reads a file, if there is one.
pub(super) fn json<T: DeserializeOwned>(file: &Path) -> Result<Option<T>, ModelError> {
    let text = match regular_file::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ModelError::io(file, error)),
    };
    let mut json = serde_json::Deserializer::from_str(&text);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        ModelError::field(file, error.path().to_string(), error.inner().to_string())
    })?;
    Ok(Some(read))
}
