//! A policy's settings: `NAME.toml` next to `NAME.wasm`. The policy gets them as JSON.

use std::path::{Path, PathBuf};

use serde_json::{Map, Number, Value as Json};
use toml::Value as Toml;

use crate::files::read_regular_text;

/// The settings of a policy without a settings file.
const NONE: &str = "{}";

/// Longest settings file. Settings are a few lines; tables belong into artifacts.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Settings that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct SettingsError {
    /// The file.
    pub file: PathBuf,
    /// The line at fault, from 1, when it is known.
    pub line: Option<usize>,
    /// The fault, with the field where it is known.
    pub reason: String,
    /// Whether the same file may be readable later.
    pub may_pass: bool,
}

/// The settings file of the policy in the file `policy`.
pub fn file_of(policy: &Path) -> PathBuf {
    policy.with_extension("toml")
}

/// Reads a settings file into JSON. Without a file the settings are `{}`.
///
/// # Errors
/// The file cannot be read, is no regular file, is not TOML, or holds an infinity or NaN, which JSON has not.
pub fn read(file: &Path) -> Result<String, SettingsError> {
    let fail = |line, reason: String| SettingsError {
        file: file.to_owned(),
        line,
        reason,
        may_pass: false,
    };
    let text = match read_regular_text(file, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(NONE.to_owned()),
        Err(error) => {
            return Err(SettingsError {
                may_pass: error.may_pass(),
                ..fail(None, error.to_string())
            });
        }
    };
    let table: toml::Table = toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        fail(line, error.message().to_owned())
    })?;
    let json = object(table, "").map_err(|reason| fail(None, reason))?;
    Ok(Json::Object(json).to_string())
}

fn object(table: toml::Table, at: &str) -> Result<Map<String, Json>, String> {
    table
        .into_iter()
        .map(|(key, value)| {
            let at = if at.is_empty() {
                key.clone()
            } else {
                format!("{at}.{key}")
            };
            Ok((key, json(value, &at)?))
        })
        .collect()
}

fn json(value: Toml, at: &str) -> Result<Json, String> {
    Ok(match value {
        Toml::String(text) => Json::String(text),
        Toml::Integer(number) => Json::Number(number.into()),
        Toml::Float(number) => Number::from_f64(number)
            .map(Json::Number)
            .ok_or_else(|| format!("{at}: must be a finite number"))?,
        Toml::Boolean(yes) => Json::Bool(yes),
        Toml::Datetime(time) => Json::String(time.to_string()),
        Toml::Array(values) => values
            .into_iter()
            .enumerate()
            .map(|(i, value)| json(value, &format!("{at}[{i}]")))
            .collect::<Result<_, _>>()?,
        Toml::Table(table) => Json::Object(object(table, at)?),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read_text(text: &str) -> Result<String, SettingsError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("name.toml");
        std::fs::write(&file, text).unwrap();
        read(&file)
    }

    #[test]
    fn becomes_json() {
        let json = read_text("tau = 6\nshare = 0.5\nnames = [\"a\"]\n[deep]\non = true\n");
        let expected = r#"{"deep":{"on":true},"names":["a"],"share":0.5,"tau":6}"#;
        let json: Json = serde_json::from_str(&json.unwrap()).unwrap();
        assert_eq!(json, serde_json::from_str::<Json>(expected).unwrap());
    }

    #[test]
    fn without_a_file_the_settings_are_an_empty_object() {
        assert_eq!(read(Path::new("/nowhere/name.toml")), Ok("{}".to_owned()));
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = read_text("tau = 6\n\nshare = oops\n").unwrap_err();
        assert_eq!(error.line, Some(3));
        assert!(error.to_string().contains("name.toml:3: "), "{error}");
    }

    #[test]
    fn numbers_that_json_has_not_are_refused_with_their_field() {
        let error = read_text("[deep]\nlimits = [1.0, inf]\n").unwrap_err();
        assert!(error.to_string().contains("deep.limits[1]"), "{error}");
    }
}
