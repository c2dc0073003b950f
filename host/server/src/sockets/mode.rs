//! The programs that may connect to a Unix socket, as the mode of its file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Reading and writing by the server's own user, without which it could not look at its socket.
const OWN: u32 = 0o600;

/// The mode of the file of a Unix socket: programs that may write to it may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct SocketMode(u32);

/// A text that is no mode of a socket.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{0}`, must be an octal mode from \"0600\" to \"0777\" that lets the owner read and write, such as \"0660\""
)]
pub struct WrongMode(String);

// === impl SocketMode ===

impl SocketMode {
    /// The bits of permission.
    pub(super) fn bits(self) -> u32 {
        self.0
    }
}

impl Default for SocketMode {
    /// The server's user and group.
    fn default() -> Self {
        Self(0o660)
    }
}

impl FromStr for SocketMode {
    type Err = WrongMode;

    fn from_str(text: &str) -> Result<Self, WrongMode> {
        let is_octal = text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        let bits = u32::from_str_radix(text, 8).ok().filter(|_| is_octal);
        match bits {
            Some(bits) if bits & OWN == OWN && bits <= 0o777 => Ok(Self(bits)),
            _ => Err(WrongMode(text.to_owned())),
        }
    }
}

impl TryFrom<String> for SocketMode {
    type Error = WrongMode;

    fn try_from(text: String) -> Result<Self, WrongMode> {
        text.parse()
    }
}

impl From<SocketMode> for String {
    fn from(mode: SocketMode) -> Self {
        mode.to_string()
    }
}

impl fmt::Display for SocketMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_mode_is_octal_and_keeps_the_owner() {
        for (text, bits) in [("0660", 0o660), ("600", 0o600), ("0777", 0o777)] {
            assert_eq!(text.parse::<SocketMode>().unwrap().bits(), bits);
        }
        assert_eq!(SocketMode::default().to_string(), "0660");
        for wrong in ["", "0o660", "+660", "0680", "0060", "0400", "1777", "rw"] {
            let error = wrong.parse::<SocketMode>().unwrap_err().to_string();
            assert!(error.contains("such as \"0660\""), "{error}");
        }
    }
}
