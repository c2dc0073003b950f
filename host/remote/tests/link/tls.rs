//! Links to a server that demands certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use switchyard_remote::{ClientFiles, ConnectError, RemoteExecutor, RemoteOptions, RemoteTls};
use tokio_rustls::TlsAcceptor;

use crate::server::FakeServer;
use crate::{assert_answers, options};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../server/tests/tls")
        .join(name)
}

fn server() -> FakeServer {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(file("ca.pem")).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let chain = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![chain], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    FakeServer::start_with(Some(TlsAcceptor::from(Arc::new(config))))
}

fn tls(server: &FakeServer, host: &str, ca: &str, client: Option<&str>) -> RemoteOptions {
    let url = format!("grpcs://{host}:{}", server.at.port());
    RemoteOptions {
        address: url.parse().unwrap(),
        tls: Some(RemoteTls {
            ca: file(ca),
            client: client.map(|name| ClientFiles {
                certificate: file(&format!("{name}.pem")),
                key: file(&format!("{name}.key")),
            }),
        }),
        ..options(server)
    }
}

fn refused(options: RemoteOptions) -> String {
    match RemoteExecutor::connect(options) {
        Ok(_) => panic!("it connects"),
        Err(ConnectError::Away(reason)) => reason,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn only_a_certificate_of_the_right_authority_gets_a_link() {
    let server = server();
    for host in ["127.0.0.1", "localhost"] {
        let right = tls(&server, host, "ca.pem", Some("client"));
        assert_answers(&mut RemoteExecutor::connect(right).unwrap());
    }
    for _ in 0..20 {
        for client in [Some("foreign-client"), Some("expired-client"), None] {
            let reason = refused(tls(&server, "127.0.0.1", "ca.pem", client));
            assert!(
                reason.contains("refuses the certificate of this side"),
                "{client:?}: {reason}"
            );
        }
    }
}

#[test]
fn a_server_of_another_name_or_authority_gets_no_link() {
    let server = server();
    let foreign = tls(&server, "127.0.0.1", "foreign-ca.pem", Some("client"));
    let reason = refused(foreign);
    assert!(reason.contains("`ca`"), "{reason}");
    // Its certificate has localhost and 127.0.0.1.
    let other = tls(&server, "127.0.0.2", "ca.pem", Some("client"));
    let reason = refused(other);
    assert!(reason.contains("not valid for name"), "{reason}");
    let plain = RemoteOptions {
        tls: None,
        ..tls(&server, "127.0.0.1", "ca.pem", None)
    };
    refused(plain);
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let of = |ca: &str, certificate: &str, key: &str| {
        let client = ClientFiles {
            certificate: file(certificate),
            key: file(key),
        };
        let files = RemoteTls {
            ca: file(ca),
            client: Some(client),
        };
        files.check()
    };
    assert_eq!(of("ca.pem", "client.pem", "client.key"), Ok(()));
    for (ca, certificate, key, field) in [
        ("absent.pem", "client.pem", "client.key", "ca"),
        ("make.sh", "client.pem", "client.key", "ca"),
        ("ca.pem", "client.key", "client.key", "certificate"),
        ("ca.pem", "client.pem", "server.key", "key"),
    ] {
        let error = of(ca, certificate, key).unwrap_err();
        assert_eq!(error.field, field, "{error}");
    }
}
