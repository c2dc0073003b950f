//! Settings: the policy's own JSON into a struct, with errors that name the field.

mod error;
mod json;
mod number;
mod text;

use serde::de::DeserializeOwned;

use json::JsonReader;

/// Parses settings. Give the struct `#[serde(default, deny_unknown_fields)]`, so that a
/// missing field has a default and a misspelt one is refused.
///
/// # Errors
/// `settings: FIELD: reason`, with the path to the field.
///
/// ```
/// #[derive(serde::Deserialize)]
/// #[serde(default, deny_unknown_fields)]
/// struct Settings { tau: u32 }
/// impl Default for Settings { fn default() -> Self { Self { tau: 3 } } }
///
/// let settings: Settings = switchyard_sdk::settings::parse("{}")?;
/// assert_eq!(settings.tau, 3);
/// let error = switchyard_sdk::settings::parse::<Settings>(r#"{"tau": "five"}"#).err();
/// assert!(error.is_some_and(|e| e.starts_with("settings: tau: ")));
/// # Ok::<(), String>(())
/// ```
pub fn parse<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    // No settings at all means all defaults.
    let json = if json.trim().is_empty() { "{}" } else { json };
    let mut reader = JsonReader::new(json);
    let parsed = T::deserialize(&mut reader);
    let parsed = parsed.and_then(|parsed| reader.end().map(|()| parsed));
    parsed.map_err(|error| format!("settings: {error}"))
}

/// Refuses a setting with its name and the reason unless `holds`.
///
/// # Errors
/// `settings: FIELD: reason` when it does not hold.
pub fn require(holds: bool, field: &str, reason: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("settings: {field}: {reason}"))
    }
}

#[cfg(test)]
mod tests;
