//! A mistake in a file of labelled rows.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file cannot be measured with.
#[derive(Debug, Error)]
pub(crate) struct DataFault {
    file: PathBuf,
    /// The row, as a reader of the file counts.
    row: Option<Place>,
    /// The column, field or array.
    column: Option<String>,
    reason: String,
}

/// A row of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Line of a text file, from 1.
    Line(u64),
    /// Row of an array, from 0.
    Row(usize),
}

// === impl DataFault ===

impl DataFault {
    /// A fault of the whole file.
    pub(super) fn new(file: &Path, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_path_buf(),
            row: None,
            column: None,
            reason: reason.into(),
        }
    }

    pub(super) fn at(mut self, row: Place) -> Self {
        self.row = Some(row);
        self
    }

    pub(super) fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }
}

impl fmt::Display for DataFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.file.display())?;
        match self.row {
            Some(Place::Line(line)) => write!(out, "line {line}: ")?,
            Some(Place::Row(row)) => write!(out, "row {row}: ")?,
            None => {}
        }
        if let Some(column) = &self.column {
            write!(out, "`{column}`: ")?;
        }
        out.write_str(&self.reason)
    }
}
