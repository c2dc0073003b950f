//! TLS of a port: its files, read again when they change, and the handshake.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::TlsConfig;

/// How often the files are looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The first byte of every handshake.
pub(crate) const HANDSHAKE: u8 = 0x16;

/// The answer to a client without TLS.
const PLAIN_REFUSED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n\
      Content-Length: 55\r\n\r\n{\"error\":\"this port serves TLS only: ask for https://\"}";

/// Most reads of a request without TLS.
const PLAIN_READS_MAX: usize = 64;

/// A file of TLS that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: {}: {reason}", file.display())]
pub struct TlsError {
    /// The field of the configuration, such as `server.tls.key`, or the option.
    pub field: String,
    /// The file.
    pub file: PathBuf,
    /// The reason, with the way out.
    pub reason: String,
}

/// TLS of a port.
#[derive(Debug)]
pub struct Tls {
    /// The field that names the files, such as `server.tls`.
    field: &'static str,
    files: TlsConfig,
    /// Protocols that a client may choose by ALPN.
    protocols: &'static [&'static [u8]],
    /// The files before they were opened.
    opened: Stamps,
    config: ArcSwap<ServerConfig>,
}

/// Time, length and number of each file.
type Stamps = Vec<Option<(Option<SystemTime>, u64, u64)>>;

// === impl Tls ===

impl Tls {
    /// Reads the files that a field names.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn open(
        field: &'static str,
        files: &TlsConfig,
        protocols: &'static [&'static [u8]],
    ) -> Result<Self, TlsError> {
        let opened = stamps(files);
        let config = read(field, files, protocols)?;
        Ok(Self {
            field,
            files: files.clone(),
            protocols,
            opened,
            config: ArcSwap::from_pointee(config),
        })
    }

    /// Completes the handshake of a client.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> std::io::Result<TlsStream<S>> {
        TlsAcceptor::from(self.config.load_full())
            .accept(stream)
            .await
    }

    /// Reads the files again whenever they have changed since they were opened, until it is dropped. Files
    /// that cannot be used leave the last ones in use.
    pub(crate) async fn follow(&self, look_every: Duration) {
        let mut read_at = self.opened.clone();
        loop {
            sleep(look_every).await;
            let now = stamps(&self.files);
            if now == read_at {
                continue;
            }
            read_at = now;
            match read(self.field, &self.files, self.protocols) {
                Ok(config) => {
                    self.config.store(Arc::new(config));
                    tracing::info!(field = self.field, "the certificate was read again");
                }
                Err(error) => tracing::error!(%error, "the certificate before stays in use"),
            }
        }
    }
}

/// Answers a client without TLS. Reads its request too: bytes that stay unread reset the connection, and with
/// it the answer.
pub(crate) async fn refuse_plain(mut stream: TcpStream) {
    // An error: the client has gone.
    if stream.write_all(PLAIN_REFUSED).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut unused = [0; 1_024];
    for _ in 0..PLAIN_READS_MAX {
        if !matches!(stream.read(&mut unused).await, Ok(1..)) {
            return;
        }
    }
}

fn stamps(files: &TlsConfig) -> Stamps {
    let TlsConfig {
        certificate,
        key,
        client_ca,
    } = files;
    let files = [certificate, key].into_iter().chain(client_ca);
    files.map(|file| stamp(file)).collect()
}

fn stamp(file: &Path) -> Option<(Option<SystemTime>, u64, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((
        metadata.modified().ok(),
        metadata.len(),
        inode_of(&metadata),
    ))
}

#[cfg(unix)]
fn inode_of(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode_of(_metadata: &Metadata) -> u64 {
    0
}

fn read(field: &str, files: &TlsConfig, protocols: &[&[u8]]) -> Result<ServerConfig, TlsError> {
    let refuse = |name: &str, file: &Path, reason: String| TlsError {
        field: format!("{field}.{name}"),
        file: file.to_path_buf(),
        reason,
    };
    let certificate = &files.certificate;
    let chain =
        certificates(certificate).map_err(|reason| refuse("certificate", certificate, reason))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| {
        let reason = format!("{error}; must be a private key in PEM, readable by the server");
        refuse("key", &files.key, reason)
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse("certificate", certificate, error.to_string()))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let refuse = |reason| refuse("client_ca", file, reason);
            let mut roots = RootCertStore::empty();
            for authority in certificates(file).map_err(refuse)? {
                roots
                    .add(authority)
                    .map_err(|error| refuse(error.to_string()))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| refuse(error.to_string()))?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        let reason = format!("{error}; must be the key of {}", certificate.display());
        refuse("key", &files.key, reason)
    })?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// The certificates of a file, at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let read: Vec<_> = read.map_err(|error| format!("{error}; must be certificates in PEM"))?;
    match read.is_empty() {
        true => Err("has no certificate; must be certificates in PEM".to_owned()),
        false => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SOON: Duration = Duration::from_millis(5);

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/tls")
            .join(name)
    }

    fn opened(certificate: &str, key: &str, client_ca: Option<&str>) -> Result<Tls, TlsError> {
        let files = TlsConfig {
            certificate: fixture(certificate),
            key: fixture(key),
            client_ca: client_ca.map(fixture),
        };
        Tls::open("tls", &files, &[])
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        assert!(opened("server.pem", "server.key", Some("ca.pem")).is_ok());
        for (certificate, key, client_ca, field, wanted) in [
            (
                "absent.pem",
                "server.key",
                None,
                "tls.certificate",
                "No such file",
            ),
            (
                "server.key",
                "server.key",
                None,
                "tls.certificate",
                "has no certificate",
            ),
            (
                "server.pem",
                "server.pem",
                None,
                "tls.key",
                "must be a private key in PEM",
            ),
            (
                "server.pem",
                "client.key",
                None,
                "tls.key",
                "must be the key of",
            ),
            (
                "server.pem",
                "server.key",
                Some("make.sh"),
                "tls.client_ca",
                "has no certificate",
            ),
        ] {
            let error = opened(certificate, key, client_ca).unwrap_err();
            assert_eq!(error.field, field);
            let said = error.to_string();
            assert!(said.contains(wanted), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    #[test]
    fn the_refusal_of_plain_http_is_whole() {
        let text = String::from_utf8(PLAIN_REFUSED.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{text}"
        );
    }

    /// Replaces `live.pem` and `live.key` with the pair of this name.
    fn put(folder: &Path, from: &str) {
        for end in ["pem", "key"] {
            let new = folder.join("new");
            std::fs::copy(fixture(&format!("{from}.{end}")), &new).unwrap();
            std::fs::rename(&new, folder.join(format!("live.{end}"))).unwrap();
        }
    }

    fn open_live(folder: &Path) -> Arc<Tls> {
        put(folder, "server");
        let files = TlsConfig {
            certificate: folder.join("live.pem"),
            key: folder.join("live.key"),
            client_ca: None,
        };
        Arc::new(Tls::open("tls", &files, &[]).unwrap())
    }

    async fn until_replaced(tls: &Tls, first: &Arc<ServerConfig>) {
        let began = std::time::Instant::now();
        while Arc::ptr_eq(first, &tls.config.load_full()) {
            assert!(began.elapsed() < Duration::from_secs(20));
            sleep(SOON).await;
        }
    }

    #[tokio::test]
    async fn changed_files_are_used_and_broken_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let tls = open_live(folder.path());
        let following = tokio::spawn({
            let tls = Arc::clone(&tls);
            async move { tls.follow(SOON).await }
        });
        tokio::task::yield_now().await;
        let first = tls.config.load_full();
        std::fs::write(folder.path().join("live.pem"), "broken").unwrap();
        sleep(20 * SOON).await;
        assert!(Arc::ptr_eq(&first, &tls.config.load_full()));
        put(folder.path(), "rotated");
        until_replaced(&tls, &first).await;
        following.abort();
    }

    /// The ports are bound before the models are loaded, and followed afterwards.
    #[tokio::test]
    async fn files_that_change_before_they_are_followed_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let tls = open_live(folder.path());
        let first = tls.config.load_full();
        put(folder.path(), "rotated");
        tokio::select! {
            () = tls.follow(SOON) => {}
            () = until_replaced(&tls, &first) => {}
        }
    }
}
