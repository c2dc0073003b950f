//! The errors of a configuration, by file and field.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Names closer to an unknown one than this are suggested (Jaro-Winkler similarity).
const SIMILAR: f64 = 0.75;

/// Why a configuration was refused.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file is not there or not readable.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}: {reason}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The position and the reason.
        reason: String,
    },
    /// A field is unknown, missing or of an impossible value.
    #[error("{}: {field}: {reason}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// The field, such as `pool[0].workers`.
        field: String,
        /// The reason.
        reason: String,
    },
    /// Several fields are at fault; one line each.
    #[error("{}", lines(.0))]
    Several(Vec<Self>),
}

// === impl ConfigError ===

impl ConfigError {
    /// All mistakes as one error; none is no error.
    pub(super) fn all(mut mistakes: Vec<Self>) -> Result<(), Self> {
        match mistakes.len() {
            0 => Ok(()),
            1 => Err(mistakes.remove(0)),
            _ => Err(Self::Several(mistakes)),
        }
    }

    /// A field whose value is refused.
    pub fn field(file: &Path, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Field {
            file: file.to_path_buf(),
            field: field.into(),
            reason: reason.into(),
        }
    }

    pub(super) fn syntax(file: &Path, error: &toml::de::Error) -> Self {
        Self::Syntax {
            file: file.to_path_buf(),
            reason: error.to_string().trim_end().to_owned(),
        }
    }

    pub(super) fn field_of(
        file: &Path,
        error: &serde_path_to_error::Error<toml::de::Error>,
    ) -> Self {
        let message = error.inner().message();
        let reason = match suggestion(message) {
            Some(name) => format!("{message}; did you mean `{name}`?"),
            None => message.to_owned(),
        };
        let path = error.path().to_string();
        let field = if path == "." {
            "top level".to_owned()
        } else {
            path
        };
        Self::field(file, field, reason)
    }
}

fn lines(mistakes: &[ConfigError]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The known name closest to an unknown one, read from serde's own words: ``unknown field `x`,
/// expected one of `a`, `b` `` (or `unknown variant`).
fn suggestion(message: &str) -> Option<String> {
    let (unknown, expected) = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"))?
        .split_once('`')?;
    let known = expected.split('`').skip(1).step_by(2);
    closest(unknown, known).map(str::to_owned)
}

/// The known name that is most similar to `wanted`, if any is similar enough.
pub(crate) fn closest<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_known_name_is_suggested() {
        let message = "unknown field `polcy`, expected one of `name`, `policy`, `apps`";
        assert_eq!(suggestion(message).as_deref(), Some("policy"));
        let far = "unknown field `zzz`, expected one of `name`, `policy`";
        assert_eq!(suggestion(far), None);
        assert_eq!(suggestion("invalid type: integer"), None);
    }
}
