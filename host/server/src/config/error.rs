//! The errors of a configuration, by file and field.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::document::Step;
use super::written::Origin;

/// Names closer to an unknown one than this are suggested (Jaro-Winkler similarity).
const SIMILAR: f64 = 0.75;

/// Why a configuration was refused.
#[derive(Clone, Debug, Error)]
pub enum ConfigError {
    /// The file is not there or not readable.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: Arc<std::io::Error>,
    },
    /// The file is not TOML.
    #[error("{}:{line}:{column}: not TOML: {reason}: `{text}`", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// The reason.
        reason: String,
        /// The line.
        text: String,
    },
    /// A field is missing.
    #[error("{origin}: {section}: missing field `{name}`")]
    Missing {
        /// Where its section is.
        origin: Origin,
        /// The section, such as `pool[0]`.
        section: String,
        /// The field.
        name: String,
    },
    /// A field is unknown or of an impossible value.
    #[error("{origin}: {field}: {reason}")]
    Field {
        /// Where it was written.
        origin: Origin,
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

    /// The line in the file.
    pub(super) fn line(&self) -> Option<usize> {
        match self {
            Self::Syntax { line, .. } => Some(*line),
            Self::Missing { origin, .. } | Self::Field { origin, .. } => match origin {
                Origin::File { line, .. } => *line,
                Origin::Override(_) => None,
            },
            Self::Unreadable { .. } | Self::Several(_) => None,
        }
    }

    /// The field whose value is refused.
    pub(super) fn field_name(&self) -> Option<&str> {
        match self {
            Self::Field { field, .. } => Some(field),
            _ => None,
        }
    }
}

/// The reason of a mistake from serde's words: the value, the allowed ones, the closest name.
/// `last` is the last step to the field.
pub(super) fn reason(last: Option<&Step>, message: &str, value: Option<&str>) -> String {
    let expected = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "));
    if let Some((found, expected)) = expected {
        let is_section = matches!(last, Some(Step::Key(key)) if SECTIONS.contains(&key.as_str()));
        if let (true, Some(Step::Key(key)), "a sequence") = (is_section, last, expected) {
            return format!("must be a list of tables: write [[{key}]]");
        }
        let value = value.unwrap_or(found);
        return format!("{value}, must be {}", in_words(expected));
    }
    let message = match suggestion(message) {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message.to_owned(),
    };
    match value {
        Some(value) if message.starts_with("must be ") => format!("{value}, {message}"),
        Some(value) if is_about_value(&message, value) => format!("{value}: {message}"),
        _ => message,
    }
}

/// Whether the message needs the value that it does not show.
fn is_about_value(message: &str, value: &str) -> bool {
    !message.starts_with("unknown field") && !message.contains(value.trim_matches('"'))
}

/// Sections that are lists.
const SECTIONS: [&str; 3] = ["app", "worker", "pool"];

/// A type of Rust for readers who know TOML.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "an integer, at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list, such as [\"a\", \"b\"]",
        "a map" => "a table",
        expected if expected.starts_with("struct ") => "a table",
        expected => expected,
    }
}

fn lines(mistakes: &[ConfigError]) -> String {
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The known name closest to an unknown one, read from serde's own words: ``unknown field `x`,
/// expected one of `a`, `b` `` (or `unknown variant`).
pub(super) fn suggestion(message: &str) -> Option<String> {
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
