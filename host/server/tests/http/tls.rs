//! TLS of the ports for clients.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use switchyard_server::config::TlsConfig;
use switchyard_server::ingress::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::test_bed::{ONE_ROW, TestServer, request};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

async fn server(certificate: &str, client_ca: Option<&str>, limits: Limits) -> TestServer {
    let files = TlsConfig {
        certificate: file(&format!("{certificate}.pem")),
        key: file(&format!("{certificate}.key")),
        client_ca: client_ca.map(file),
    };
    TestServer::start_with(limits, Some(&files)).await
}

/// A connection of a client with this certificate or none, which asks for a protocol.
async fn connect(
    address: SocketAddr,
    certificate: Option<&str>,
    protocol: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(file("ca.pem")).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let chain = CertificateDer::from_pem_file(file(&format!("{name}.pem"))).unwrap();
            let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(vec![chain], key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.into()];
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// The whole answer to an inference over HTTP/1.1.
async fn infer(mut stream: TlsStream<TcpStream>) -> io::Result<String> {
    let head = format!(
        "POST /v2/models/linear/infer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{ONE_ROW}",
        ONE_ROW.len()
    );
    stream.write_all(head.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test]
async fn inferences_over_tls_are_answered() {
    let server = server("server", None, Limits::default()).await;
    let stream = connect(server.address, None, "http/1.1").await.unwrap();
    let text = infer(stream).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

#[tokio::test]
async fn grpc_over_tls_is_answered() {
    let server = server("server", None, Limits::default()).await;
    let stream = connect(server.grpc, None, "h2").await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let call = Request::post("https://localhost/inference.GRPCInferenceService/ServerLive")
        .header("content-type", "application/grpc")
        .body(Full::new(Bytes::from_static(&[0, 0, 0, 0, 0])))
        .unwrap();
    let answer = sender.send_request(call).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "application/grpc");
}

#[tokio::test]
async fn plain_http_is_told_to_use_tls() {
    let server = server("server", None, Limits::default()).await;
    let answer = server
        .send(request("GET", "/v2/health/live", &[], ""))
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.error().contains("ask for https://"));
}

#[tokio::test]
async fn clients_without_a_certificate_of_the_authority_get_no_answer() {
    let server = server("server", Some("ca.pem"), Limits::default()).await;
    for certificate in [
        None,
        Some("foreign-client"),
        Some("expired-client"),
        Some("server"),
    ] {
        for address in [server.address, server.grpc] {
            // With TLS 1.3 the refusal comes after the client's side of the handshake.
            let refused = match connect(address, certificate, "http/1.1").await {
                Ok(stream) => infer(stream).await.err(),
                Err(error) => Some(error),
            };
            assert!(refused.is_some(), "{certificate:?}");
        }
    }
    let stream = connect(server.address, Some("client"), "http/1.1").await;
    let text = infer(stream.unwrap()).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

#[tokio::test]
async fn a_handshake_that_does_not_come_ends_the_connection() {
    let limits = Limits {
        head_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = server("server", None, limits).await;
    for begin in [&b""[..], &[0x16, 3, 1]] {
        let mut stream = server.connect().await;
        stream.write_all(begin).await.unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        assert!(ended.is_ok(), "{begin:?}");
        assert!(rest.is_empty(), "{rest:?}");
    }
}
