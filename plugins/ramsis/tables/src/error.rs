//! Faults of a set of tables.

use std::fmt;

/// A fault in a file of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesError {
    /// The file in the set's folder.
    pub file: String,
    /// The field at fault.
    pub field: String,
    /// The fault.
    pub reason: Reason,
}

/// The fault of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Not JSON, or JSON of another form.
    Json(String),
    /// A required list is empty.
    Empty,
    /// Out of range; the text gives the range.
    Range(&'static str),
    /// Different from the set.
    Differs {
        /// The set's value.
        expected: String,
        /// The file's value.
        found: String,
    },
    /// The length of the file differs from that of its header.
    Length {
        /// Required bytes.
        expected: usize,
        /// Bytes of the file.
        found: usize,
    },
    /// Missing.
    Missing,
}

// === impl TablesError ===

impl TablesError {
    pub(crate) fn new(file: &str, field: impl Into<String>, reason: Reason) -> Self {
        Self {
            file: file.to_owned(),
            field: field.into(),
            reason,
        }
    }
}

impl fmt::Display for TablesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            field,
            reason,
        } = self;
        write!(f, "{file}: `{field}`: {reason}")
    }
}

impl std::error::Error for TablesError {}

// === impl Reason ===

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => f.write_str(error),
            Self::Empty => f.write_str("is empty"),
            Self::Range(rule) => f.write_str(rule),
            Self::Differs { expected, found } => write!(f, "is {found}, must be {expected}"),
            Self::Length { expected, found } => {
                write!(f, "has {found} bytes, must have {expected}")
            }
            Self::Missing => f.write_str("has no entry for this file"),
        }
    }
}
