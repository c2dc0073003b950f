//! The reason why settings are refused, and its place.

use std::fmt::{self, Display};

use serde::de::{Error, Expected, Unexpected};

use crate::reason::Figure;

/// The reason, and the path to the value.
#[derive(Debug)]
pub(super) struct SettingsError {
    path: String,
    reason: String,
}

// === impl SettingsError ===

impl SettingsError {
    pub(super) fn new(reason: String) -> Self {
        Self {
            path: String::new(),
            reason,
        }
    }

    /// The value is in this field.
    #[cold]
    #[inline(never)]
    pub(super) fn in_field(self, name: &str) -> Self {
        let dot = match self.path.as_bytes().first() {
            None | Some(b'[') => "",
            Some(_) => ".",
        };
        Self {
            path: [name, dot, &self.path].concat(),
            ..self
        }
    }

    /// The value is at this position of a list.
    #[cold]
    #[inline(never)]
    pub(super) fn in_list(self, index: usize) -> Self {
        let dot = match self.path.as_bytes().first() {
            None | Some(b'[') => "",
            Some(_) => ".",
        };
        Self {
            path: ["[", &index.to_string(), "]", dot, &self.path].concat(),
            ..self
        }
    }
}

impl Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        f.write_str(if self.path.is_empty() { "" } else { ": " })?;
        f.write_str(&self.reason)
    }
}

impl std::error::Error for SettingsError {}

/// As serde words it. Floats are written by [`Figure`]: the standard library's printing of them is
/// larger than a small policy.
impl Error for SettingsError {
    fn custom<T: Display>(reason: T) -> Self {
        Self::new(reason.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        wrong("invalid type: ", &found, expected)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        wrong("invalid value: ", &found, expected)
    }
}

#[cold]
#[inline(never)]
fn wrong(kind: &str, found: &Unexpected<'_>, expected: &dyn Expected) -> SettingsError {
    let mut reason = kind.to_owned();
    match found {
        Unexpected::Bool(value) => {
            reason.push_str(if *value {
                "boolean `true`"
            } else {
                "boolean `false`"
            });
        }
        Unexpected::Unsigned(number) => figure(&mut reason, "integer `", number),
        Unexpected::Signed(number) => figure(&mut reason, "integer `", number),
        Unexpected::Float(number) => figure(&mut reason, "floating point `", number),
        Unexpected::Str(text) => {
            for part in ["string \"", text, "\""] {
                reason.push_str(part);
            }
        }
        Unexpected::Unit | Unexpected::Option => reason.push_str("null"),
        Unexpected::Seq => reason.push_str("a list"),
        Unexpected::Map => reason.push_str("an object"),
        _ => reason.push_str("another value"),
    }
    reason.push_str(", expected ");
    reason.push_str(&expected.to_string());
    SettingsError::new(reason)
}

fn figure(reason: &mut String, kind: &str, number: &impl Figure) {
    reason.push_str(kind);
    number.write(reason);
    reason.push('`');
}
