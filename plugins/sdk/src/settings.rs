//! Settings: the policy's own JSON into a struct, with errors that name the field.

use serde::de::DeserializeOwned;

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
    let mut reader = serde_json::Deserializer::from_str(json);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => format!("settings: {}", error.inner()),
            path => format!("settings: {path}: {}", error.inner()),
        }
    })?;
    reader.end().map_err(|error| format!("settings: {error}"))?;
    Ok(parsed)
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
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Sample {
        tau: u32,
        inner: Inner,
    }

    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Inner {
        share: f64,
    }

    #[test]
    fn names_the_field_at_any_depth() {
        let error = parse::<Sample>(r#"{"inner": {"share": true}}"#).unwrap_err();
        assert!(error.starts_with("settings: inner.share: "), "{error}");
    }

    #[test]
    fn refuses_unknown_fields_and_trailing_text() {
        let error = parse::<Sample>(r#"{"tua": 3}"#).unwrap_err();
        assert!(error.contains("unknown field `tua`"), "{error}");
        assert!(parse::<Sample>("{} {}").is_err());
    }

    #[test]
    fn nothing_means_defaults() {
        assert_eq!(parse::<Sample>(""), Ok(Sample::default()));
    }
}
