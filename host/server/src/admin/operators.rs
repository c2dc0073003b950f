//! The operators: a file with a line `NAME TOKEN` for each who may order, `NAME TOKEN read` for each who may
//! only read.

use std::path::{Path, PathBuf};

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use switchyard_policy::files::{open_regular, read_regular_text};
use switchyard_policy::history::ContentHash;
use thiserror::Error;

/// Longest file.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Shortest token: shorter ones can be guessed.
const TOKEN_LENGTH_MIN: usize = 16;

/// The word after the token of an operator who may only read.
const READ: &str = "read";

/// The file of the operators. It is read for each request with a token, so that a token is gone with its
/// line.
#[derive(Clone, Debug, Default)]
pub(super) struct Operators {
    file: Option<PathBuf>,
}

/// Why a request is not accepted.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum NotAllowed {
    /// No operator is configured.
    #[error(
        "this port only reads: `operators = \"FILE\"` in [server] names a file with a line `NAME TOKEN` \
         for each operator"
    )]
    Off,
    /// The file cannot be used.
    #[error("server.operators: {file}: {reason}")]
    Unusable { file: String, reason: String },
    /// The header is missing or has another form.
    #[error("the header `Authorization: Bearer TOKEN` is missing")]
    NoToken,
    /// No operator has this token.
    #[error("no operator has this token")]
    Unknown,
    /// The operator may only read.
    #[error("operator `{0}` may only read: the line in `operators` ends in `read`")]
    OnlyReads(String),
}

// === impl NotAllowed ===

impl NotAllowed {
    /// The status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Off | Self::OnlyReads(_) => StatusCode::FORBIDDEN,
            Self::Unusable { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NoToken | Self::Unknown => StatusCode::UNAUTHORIZED,
        }
    }
}

// === impl Operators ===

impl Operators {
    /// Operators of this file; one that cannot be used is logged.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        if let Some(Err(reason)) = file.as_deref().map(read) {
            let file = file.as_deref().map(Path::display);
            tracing::error!(?file, "server.operators: no operator may order: {reason}");
        }
        Self { file }
    }

    /// Whether orders can be accepted at all.
    pub(super) fn are_named(&self) -> bool {
        self.file.is_some()
    }

    /// The name of the operator who sends an order.
    pub(super) fn orderer(&self, headers: &HeaderMap) -> Result<String, NotAllowed> {
        match self.of(headers)? {
            (name, true) => Ok(name),
            (name, false) => Err(NotAllowed::OnlyReads(name)),
        }
    }

    /// The name of the operator who reads.
    pub(super) fn reader(&self, headers: &HeaderMap) -> Result<String, NotAllowed> {
        self.of(headers).map(|(name, _)| name)
    }

    /// The name of the operator who sends a request; whether the operator may order.
    fn of(&self, headers: &HeaderMap) -> Result<(String, bool), NotAllowed> {
        let file = self.file.as_ref().ok_or(NotAllowed::Off)?;
        let value = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = value.and_then(|value| value.strip_prefix("Bearer "));
        let token = token.ok_or(NotAllowed::NoToken)?.trim();
        let text = read(file).map_err(|reason| NotAllowed::Unusable {
            file: file.display().to_string(),
            reason,
        })?;
        // Hashes are compared in constant time, and all of them.
        let sent = ContentHash::of(&[token.as_bytes()]);
        let mut name = Err(NotAllowed::Unknown);
        for (operator, token, may_order) in entries(&text) {
            if ContentHash::of(&[token.as_bytes()]) == sent {
                name = Ok((operator.to_owned(), may_order));
            }
        }
        name
    }
}

/// Whether orders can be accepted from the operators of this file.
///
/// # Errors
/// The reason why the file cannot be used.
pub(crate) fn check(file: &Path) -> Result<(), String> {
    read(file).map(drop)
}

/// The text of the file, each of whose lines has a name and a token.
fn read(file: &Path) -> Result<String, String> {
    let (_, metadata) = open_regular(file).map_err(|error| error.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!(
                "has the mode {mode:o}, must be 600: only the server's user may read it (chmod 600)"
            ));
        }
    }
    let _ = metadata;
    let text = read_regular_text(file, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    for (at, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [comment, ..] if comment.starts_with('#') => {}
            [_, token] | [_, token, READ] if token.len() >= TOKEN_LENGTH_MIN => {}
            [_, _] | [_, _, READ] => {
                return Err(format!(
                    "line {at}: the token has fewer than {TOKEN_LENGTH_MIN} characters: \
                     `openssl rand -hex 16` makes one"
                ));
            }
            _ => {
                return Err(format!(
                    "line {at}: expected `NAME TOKEN` or `NAME TOKEN read`"
                ));
            }
        }
    }
    Ok(text)
}

/// Name, token, and whether the operator may order.
fn entries(text: &str) -> impl Iterator<Item = (&str, &str, bool)> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?, words.next().is_none()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ANNA: &str = "0123456789abcdef0123456789abcdef";

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, Operators) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("operators");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        (dir, Operators::new(Some(file)))
    }

    fn bearer(token: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        headers
    }

    #[test]
    fn an_operator_is_known_by_the_token() {
        let text = format!("# who may swap\n\nanna {ANNA}\nbob  another-token-of-bob\n");
        let (_dir, operators) = file(&text, 0o600);
        assert_eq!(operators.orderer(&bearer(ANNA)), Ok("anna".to_owned()));
        let bob = bearer("another-token-of-bob");
        assert_eq!(operators.orderer(&bob), Ok("bob".to_owned()));
        for wrong in ["", "anna", &ANNA[1..], "who", "0123"] {
            let refused = operators.orderer(&bearer(wrong));
            assert_eq!(refused, Err(NotAllowed::Unknown), "{wrong}");
        }
        let none = operators.orderer(&HeaderMap::new());
        assert_eq!(none, Err(NotAllowed::NoToken));
        let off = Operators::default().orderer(&bearer(ANNA));
        assert_eq!(off, Err(NotAllowed::Off));
    }

    #[test]
    fn a_token_that_reads_does_not_order() {
        let text = format!("anna {ANNA}\nprometheus token-of-prometheus read\n");
        let (_dir, operators) = file(&text, 0o600);
        let prometheus = bearer("token-of-prometheus");
        assert_eq!(operators.reader(&prometheus), Ok("prometheus".to_owned()));
        let refused = operators.orderer(&prometheus).unwrap_err();
        assert_eq!(refused, NotAllowed::OnlyReads("prometheus".to_owned()));
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        assert_eq!(operators.reader(&bearer(ANNA)), Ok("anna".to_owned()));
        assert_eq!(
            operators.reader(&HeaderMap::new()),
            Err(NotAllowed::NoToken)
        );
        let off = Operators::default().reader(&prometheus);
        assert_eq!(off, Err(NotAllowed::Off));
    }

    #[test]
    fn a_file_that_others_may_read_or_that_is_wrong_allows_no_order() {
        let good = format!("anna {ANNA}\n");
        for (text, mode, wanted) in [
            (good.as_str(), 0o640, "has the mode 640, must be 600"),
            ("anna short\n", 0o600, "line 1: the token has fewer than 16"),
            (
                "anna 0123456789abcdef write\n",
                0o600,
                "line 1: expected `NAME TOKEN`",
            ),
            (
                "anna short read\n",
                0o600,
                "line 1: the token has fewer than 16",
            ),
            ("\nanna\n", 0o600, "line 2: expected `NAME TOKEN`"),
        ] {
            let (_dir, operators) = file(text, mode);
            let refused = operators.orderer(&bearer(ANNA)).unwrap_err();
            assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
            assert!(refused.to_string().contains(wanted), "{refused}");
        }
    }
}
