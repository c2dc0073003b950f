//! What can be wrong with a set of tables.

use std::fmt;

/// A file of a set cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesError {
    /// Which file, as it is named in the set's folder.
    pub file: String,
    /// Which field of it.
    pub field: String,
    /// What is wrong with the field.
    pub reason: Reason,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No JSON, or not of the form that is expected.
    Json(String),
    /// It needs a value.
    Empty,
    /// It is outside what is allowed.
    Range(&'static str),
    /// Something else in the set says otherwise.
    Differs {
        /// What the set says.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The file is shorter or longer than its header makes it.
    Length {
        /// Bytes that it must have.
        expected: usize,
        /// Bytes that it has.
        found: usize,
    },
    /// It is not there.
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
            Self::Missing => f.write_str("is not there"),
        }
    }
}
