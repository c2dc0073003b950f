//! Why a command ended early, and the exit code for it.

use std::fmt::Display;
use std::io::{Error, ErrorKind, Write};
use std::process::ExitCode;

use switchyard_simulate::InputError;

/// Exit code of a program whose reader closed the pipe: as a shell reports SIGPIPE.
const PIPE_CLOSED: u8 = 128 + 13;

/// Why a command ended before its work was done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A check failed: exit code 1.
    Check(String),
    /// Bad usage or bad input: exit code 2.
    Input(String),
    /// The reader of stdout is gone, as `head` after its last line: no message.
    PipeClosed,
}

// === impl Failure ===

impl Failure {
    /// An option or an input cannot be used.
    pub(crate) fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }

    /// A check failed, or a step that does not depend on the input.
    pub(crate) fn check(error: impl Display) -> Self {
        Self::Check(error.to_string())
    }

    /// Stdout cannot be written.
    pub(crate) fn stdout(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Check(format!("stdout: {error}")),
        }
    }

    /// Prints the message to stderr; the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Self::Check(text) => (text, 1),
            Self::Input(text) => (text, 2),
            Self::PipeClosed => return ExitCode::from(PIPE_CLOSED),
        };
        // A closed stderr does not change the exit code.
        let _ = writeln!(std::io::stderr(), "error: {}", printable(&text));
        ExitCode::from(code)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::input(error)
    }
}

/// Messages quote files, whose escape sequences must not reach the terminal.
fn printable(text: &str) -> String {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let mut printable = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_control(letter) {
            true => printable.extend(letter.escape_default()),
            false => printable.push(letter),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_a_file_are_shown() {
        let text = "a.toml: `\u{1b}[31mcaf\u{e9}\0`\n\tnext";
        assert_eq!(
            printable(text),
            "a.toml: `\\u{1b}[31mcaf\u{e9}\\u{0}`\n\tnext"
        );
    }
}
