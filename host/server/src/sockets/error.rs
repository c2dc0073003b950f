//! Why an address cannot be listened on.

use std::io;

use thiserror::Error;

use super::address::ListenAddress;

/// Why an address cannot be listened on.
#[derive(Debug, Error)]
pub enum BindError {
    /// The system's reason.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A server answers at the path.
    #[error("a server answers there")]
    Answered,
    /// The path is that of something else, which is kept.
    #[error("is there and is not a socket")]
    NotASocket,
    /// The system has no room for the path.
    #[error("has {bytes} bytes, must have at most {max}")]
    TooLong {
        /// Bytes of the path.
        bytes: usize,
        /// The most that the system takes.
        max: usize,
    },
    /// The folder of the path is missing.
    #[error("its folder is missing")]
    NoFolder,
    /// The user may not make files in the folder of the path.
    #[error("the server's user may not write in its folder")]
    NotWritable,
}

// === impl BindError ===

impl BindError {
    /// Whether another server listens there, which may be the one that a check is for.
    pub(crate) fn is_in_use(&self) -> bool {
        match self {
            Self::Answered => true,
            Self::System(error) => error.kind() == io::ErrorKind::AddrInUse,
            _ => false,
        }
    }

    /// The end of the message about this address, which the option `--FIELD` overrides.
    pub(crate) fn way_out(&self, field: &str, address: &ListenAddress) -> String {
        let folder = match address {
            ListenAddress::Unix(path) => path.parent(),
            ListenAddress::Tcp(_) => None,
        };
        let folder = folder.map(|folder| folder.display().to_string());
        let folder = folder.unwrap_or_default();
        match self {
            Self::Answered => {
                format!("; stop that server, or choose another path with --{field}")
            }
            Self::NotASocket | Self::TooLong { .. } => {
                format!("; choose another path with --{field}")
            }
            Self::NoFolder => format!("; `mkdir -p {folder}` makes it"),
            Self::NotWritable => {
                format!(
                    "; `chown USER {folder}` gives it to the user, or choose another path with --{field}"
                )
            }
            Self::System(error) => match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "; stop the program that listens there, or choose another port with --{field}"
                ),
                io::ErrorKind::AddrNotAvailable => {
                    format!(
                        "; choose an address of this machine with --{field}, such as 127.0.0.1:0"
                    )
                }
                io::ErrorKind::PermissionDenied if address.tcp().is_some() => {
                    format!("; choose a port from 1024 on with --{field}")
                }
                // The socket is another user's.
                io::ErrorKind::PermissionDenied => {
                    format!("; choose another path with --{field}")
                }
                _ => String::new(),
            },
        }
    }
}
