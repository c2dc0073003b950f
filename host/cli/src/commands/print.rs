//! Results to stdout, notes to stderr. `println!` and `eprintln!` panic where the reader has closed
//! the pipe; this does not.

use std::fmt::Display;
use std::io::Write;

use serde::Serialize;

use super::failure::Failure;

/// Prints a text and a line end.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    written.map_err(|error| Failure::stdout(&error))
}

/// Prints a text and a line end to stderr. A closed stderr ends no command: its result is elsewhere.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    line(serde_json::to_string_pretty(value).map_err(Failure::check)?)
}
