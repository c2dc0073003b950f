//! The exception of the module.

use std::fmt::Display;

use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, create_exception};

create_exception!(
    switchyard,
    Error,
    PyValueError,
    "An input cannot be used. The message names field, value and allowed range."
);

/// An [`Error`] with the text of a Rust error.
pub(crate) fn refused(error: impl Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// An [`Error`] about a field.
pub(crate) fn wrong(field: &str, error: impl Display) -> PyErr {
    refused(format!("{field}: {error}"))
}
