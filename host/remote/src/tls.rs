//! TLS of a link: the authority of the server, and the certificate that this side shows.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The files of a link (PEM). They are read for each connection, so that changed ones are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTls {
    /// The authorities of servers.
    pub ca: PathBuf,
    /// The certificate that this side shows and its key, for servers that demand one.
    pub client: Option<ClientFiles>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate, then those of its issuers.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A file of TLS that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {}: {reason}", file.display())]
pub struct RemoteTlsError {
    /// `ca`, `certificate` or `key`.
    pub field: &'static str,
    /// The file.
    pub file: PathBuf,
    /// The reason, with the way out.
    pub reason: String,
}

// === impl RemoteTls ===

impl RemoteTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn check(&self) -> Result<(), RemoteTlsError> {
        self.read().map(drop)
    }

    fn read(&self) -> Result<ClientConfig, RemoteTlsError> {
        let ca = &self.ca;
        let mut roots = RootCertStore::empty();
        for authority in certificates("ca", ca)? {
            let added = roots.add(authority);
            added.map_err(|error| refused("ca", ca, error.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refused("ca", ca, error.to_string()))?
            .with_root_certificates(roots);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(ClientFiles { certificate, key }) => {
                let chain = certificates("certificate", certificate)?;
                let read = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    let reason = format!("{error}; must be a private key in PEM");
                    refused("key", key, reason)
                })?;
                builder
                    .with_client_auth_cert(chain, read)
                    .map_err(|error| {
                        let reason =
                            format!("{error}; must be the key of {}", certificate.display());
                        refused("key", key, reason)
                    })?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }

    /// Completes the handshake with a server of this name.
    pub(crate) async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let config = self.read().map_err(|error| error.to_string())?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::new(config));
        let connected = connector.connect(name, stream).await;
        connected.map_err(|error| explain(&error))
    }
}

/// Why TLS ended a connection, with the way out.
pub(crate) fn explain(error: &io::Error) -> String {
    use AlertDescription as Alert;
    let of_tls = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<rustls::Error>());
    match of_tls {
        Some(rustls::Error::AlertReceived(
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::CertificateRequired
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::DecryptError,
        )) => format!(
            "TLS: the server refuses the certificate of this side ({error}); `certificate` and `key` \
             must be of an authority that it knows"
        ),
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            format!("TLS: {error}; `ca` must have the authority of the server's certificate")
        }
        Some(_) => format!("TLS: {error}"),
        None => error.to_string(),
    }
}

fn certificates(
    field: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, RemoteTlsError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let read: Result<Vec<_>, _> = read;
    match read {
        Ok(read) if !read.is_empty() => Ok(read),
        Ok(_) => Err(refused(
            field,
            file,
            "has no certificate; must be certificates in PEM".to_owned(),
        )),
        Err(error) => {
            let reason = format!("{error}; must be certificates in PEM");
            Err(refused(field, file, reason))
        }
    }
}

fn refused(field: &'static str, file: &Path, reason: String) -> RemoteTlsError {
    RemoteTlsError {
        field,
        file: file.to_path_buf(),
        reason,
    }
}
