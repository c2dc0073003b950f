//! The files of TLS.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The files of TLS on a port. They are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Certificate of the server, then those of its issuers (PEM).
    ///
    /// Path; required; example `"/etc/switchyard/server.pem"`.
    pub certificate: PathBuf,
    /// Private key of the certificate (PEM).
    ///
    /// Path; required; example `"/etc/switchyard/server.key"`.
    pub key: PathBuf,
    /// Certificates of the authorities of clients (PEM): a client without a certificate of theirs gets no
    /// connection.
    ///
    /// Path; default none: clients need no certificate; example `"/etc/switchyard/clients.pem"`.
    #[serde(default)]
    pub client_ca: Option<PathBuf>,
}

// === impl TlsConfig ===

impl TlsConfig {
    /// Its files.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.certificate, &mut self.key]
            .into_iter()
            .chain(&mut self.client_ca)
    }
}
