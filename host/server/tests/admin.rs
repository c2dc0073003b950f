//! The admin port over a socket.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use switchyard_server::admin::{Admin, AdminPools, endpoints, serve};
use switchyard_server::clock::Clock;
use switchyard_server::config::TlsConfig;
use switchyard_server::sockets::{BoundPort, SocketMode};
use switchyard_server::telemetry::Registry;
use switchyard_server::tls::Tls;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const ORDERS: &str = "token-of-anna-0001";
const READS: &str = "token-of-prometheus";

async fn port() -> SocketAddr {
    let registry = Registry::new();
    let admin = Admin::new(AdminPools::default(), registry, Clock::start());
    serving("127.0.0.1:0", admin).await
}

/// The port on all addresses, with TLS of these files and two operators.
async fn open_port(certificate: &str, client_ca: Option<&str>) -> (TempDir, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let operators = folder.path().join("operators");
    fs::write(
        &operators,
        format!("anna {ORDERS}\nprometheus {READS} read\n"),
    )
    .unwrap();
    fs::set_permissions(&operators, fs::Permissions::from_mode(0o600)).unwrap();
    let files = TlsConfig {
        certificate: fixture(&format!("{certificate}.pem")),
        key: fixture(&format!("{certificate}.key")),
        client_ca: client_ca.map(fixture),
    };
    let tls = Tls::open("admin_tls", &files, &[]).unwrap();
    let registry = Registry::new();
    let admin = Admin::new(AdminPools::default(), registry, Clock::start())
        .with_operators(Some(operators))
        .with_names(vec!["admin.example.org".to_owned()], Some(tls));
    let mut address = serving("0.0.0.0:0", admin).await;
    address.set_ip([127, 0, 0, 1].into());
    (folder, address)
}

async fn serving(address: &str, admin: Admin) -> SocketAddr {
    let port = BoundPort::bind(&address.parse().unwrap(), SocketMode::default()).unwrap();
    let address = port.address().unwrap().tcp().unwrap();
    tokio::spawn(serve(port, admin));
    address
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

/// A client that trusts this authority, with this certificate or none.
fn client(ca: &str, certificate: Option<&str>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(fixture(ca)).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let chain = CertificateDer::from_pem_file(fixture(&format!("{name}.pem"))).unwrap();
            let key = PrivateKeyDer::from_pem_file(fixture(&format!("{name}.key"))).unwrap();
            builder.with_client_auth_cert(vec![chain], key).unwrap()
        }
    };
    TlsConnector::from(Arc::new(config))
}

/// The whole answer over TLS to a request with these lines in its head.
async fn secure(
    client: &TlsConnector,
    address: SocketAddr,
    request: &str,
    headers: &str,
) -> std::io::Result<String> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = client.connect(name, stream).await?;
    let head = format!("{request} HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

fn bearer(token: &str) -> String {
    format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n")
}

/// The whole answer to one request.
async fn answer(address: SocketAddr, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_name_that_is_rebound_to_this_machine_gets_no_answer() {
    let address = port().await;
    for path in ["/metrics", "/admin/v1/status", "/admin/v1/windows/1", "/no"] {
        let text = answer(address, path, "Host: evil.example:8002\r\n").await;
        assert!(text.starts_with("HTTP/1.1 421 "), "{path}: {text}");
        assert!(text.contains("`evil.example:8002`"), "{path}: {text}");
        let headers = "Host: localhost\r\nOrigin: http://evil.example\r\n";
        let text = answer(address, path, headers).await;
        assert!(text.starts_with("HTTP/1.1 403 "), "{path}: {text}");
    }
    let local = answer(address, "/admin/v1/status", "Host: localhost\r\n").await;
    assert!(local.starts_with("HTTP/1.1 200 "), "{local}");
    assert!(local.contains("\"version\""), "{local}");
    // One request a connection.
    assert!(local.contains("connection: close"), "{local}");
}

#[tokio::test]
async fn beyond_loopback_every_request_needs_a_token() {
    let (_folder, address) = open_port("server", None).await;
    let client = client("ca.pem", None);
    let read = |headers: String| {
        let client = &client;
        async move {
            secure(client, address, "GET /metrics", &headers)
                .await
                .unwrap()
        }
    };
    let none = read("Host: localhost\r\n".to_owned()).await;
    assert!(none.starts_with("HTTP/1.1 401 "), "{none}");
    assert!(none.contains("www-authenticate: Bearer"), "{none}");
    let wrong = read(bearer("token-of-nobody-at-all")).await;
    assert!(wrong.starts_with("HTTP/1.1 401 "), "{wrong}");
    for token in [READS, ORDERS] {
        let good = read(bearer(token)).await;
        assert!(good.starts_with("HTTP/1.1 200 "), "{good}");
    }
    let named = read(bearer(READS).replace("localhost", "admin.example.org")).await;
    assert!(named.starts_with("HTTP/1.1 200 "), "{named}");
    // The address at which the connection arrived, of a port that listens on all.
    let by_address = read(bearer(READS).replace("localhost", &address.to_string())).await;
    assert!(by_address.starts_with("HTTP/1.1 200 "), "{by_address}");
}

#[tokio::test]
async fn the_right_token_helps_no_foreign_host_and_no_web_page() {
    let (_folder, address) = open_port("server", None).await;
    let client = client("ca.pem", None);
    let foreign = bearer(READS).replace("localhost", "evil.example");
    let text = secure(&client, address, "GET /metrics", &foreign).await;
    let text = text.unwrap();
    assert!(text.starts_with("HTTP/1.1 421 "), "{text}");
    let page = format!("{}Origin: https://evil.example\r\n", bearer(READS));
    let text = secure(&client, address, "GET /metrics", &page).await;
    let text = text.unwrap();
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
}

#[tokio::test]
async fn a_token_that_reads_does_not_order() {
    let (_folder, address) = open_port("server", None).await;
    let client = client("ca.pem", None);
    let order = |token: &str, body: &'static str| {
        let (client, headers, length) = (&client, bearer(token), body.len());
        let headers =
            format!("{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n");
        async move {
            let request = "POST /admin/v1/pools/main/policy/rollback";
            let stream = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let mut stream = client.connect(name, stream).await.unwrap();
            let text = format!("{request} HTTP/1.1\r\n{headers}\r\n{body}");
            stream.write_all(text.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        }
    };
    let refused = order(READS, "{}").await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    assert!(refused.contains("may only read"), "{refused}");
    let allowed = order(ORDERS, "{}").await;
    assert!(allowed.starts_with("HTTP/1.1 404 "), "{allowed}");
    assert!(allowed.contains("no such pool"), "{allowed}");
    // A body that is no order tells nothing to a client that may not order.
    for (body, status) in [("{", 400), (r#"{"polcy": "x"}"#, 422)] {
        let unknown = order("token-of-nobody-at-all", body).await;
        assert!(unknown.starts_with("HTTP/1.1 401 "), "{unknown}");
        let wrong = order(ORDERS, body).await;
        assert!(wrong.starts_with(&format!("HTTP/1.1 {status} ")), "{wrong}");
        assert!(wrong.contains(r#"{"error":""#), "{wrong}");
    }
}

#[tokio::test]
async fn plain_http_to_a_port_with_tls_is_told_so() {
    let (_folder, address) = open_port("server", None).await;
    let text = answer(address, "/metrics", &bearer(READS)).await;
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    assert!(text.contains("ask for https://"), "{text}");
}

#[tokio::test]
async fn clients_refuse_certificates_that_have_expired_or_are_of_another_authority() {
    let (_folder, address) = open_port("expired", None).await;
    let expired = secure(&client("ca.pem", None), address, "GET /metrics", "").await;
    let expired = expired.unwrap_err().to_string();
    assert!(expired.contains("expired"), "{expired}");
    let (_folder, address) = open_port("server", None).await;
    let foreign = secure(&client("foreign-ca.pem", None), address, "GET /metrics", "").await;
    let foreign = foreign.unwrap_err().to_string();
    assert!(foreign.contains("UnknownIssuer"), "{foreign}");
}

#[tokio::test]
async fn a_client_without_a_certificate_of_the_authority_gets_no_connection() {
    let (_folder, address) = open_port("server", Some("ca.pem")).await;
    for (certificate, wanted) in [
        (None, "CertificateRequired"),
        (Some("expired-client"), "CertificateExpired"),
        // A certificate of a server is none of a client.
        (Some("server"), "certificate"),
    ] {
        let client = client("ca.pem", certificate);
        let refused = secure(&client, address, "GET /metrics", &bearer(READS)).await;
        let refused = format!("{:?}", refused.unwrap_err());
        let refused = refused.to_lowercase();
        assert!(
            refused.contains(&wanted.to_lowercase()),
            "{certificate:?}: {refused}"
        );
    }
    let foreign = client("ca.pem", Some("foreign-client"));
    let refused = secure(&foreign, address, "GET /metrics", &bearer(READS)).await;
    assert!(refused.is_err(), "{refused:?}");
    let known = client("ca.pem", Some("client"));
    let text = secure(&known, address, "GET /metrics", &bearer(READS)).await;
    let text = text.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    // The certificate is no token.
    let text = secure(&known, address, "GET /metrics", "Host: localhost\r\n").await;
    let text = text.unwrap();
    assert!(text.starts_with("HTTP/1.1 401 "), "{text}");
}

/// A browser sends no token with its first request; the page asks for one, and for the numbers with it.
#[tokio::test]
async fn beyond_loopback_the_page_is_shown_and_its_numbers_need_a_token() {
    const HOST: &str = "Host: localhost\r\n";
    let (_folder, address) = open_port("server", None).await;
    let client = client("ca.pem", None);
    for path in ["/", "/dashboard"] {
        let page = secure(&client, address, &format!("GET {path}"), HOST).await;
        let page = page.unwrap();
        assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
        assert!(page.contains("text/html"), "{page}");
    }
    let numbers = "GET /admin/v1/dashboard";
    let refused = secure(&client, address, numbers, HOST).await.unwrap();
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let shown = secure(&client, address, numbers, &bearer(READS)).await;
    let shown = shown.unwrap();
    assert!(shown.starts_with("HTTP/1.1 200 "), "{shown}");
}

/// The API description, and method, path and path item of its operations on this port.
fn described() -> (Value, Vec<(String, String)>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.yaml");
    let document: Value = serde_norway::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let item = item.as_object().unwrap();
        let methods = item
            .keys()
            .filter(|key| ["get", "post"].contains(&key.as_str()));
        if item.contains_key("servers") {
            operations.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
        }
    }
    (document, operations)
}

#[test]
fn the_description_has_exactly_the_routed_endpoints() {
    let described: BTreeSet<_> = described().1.into_iter().collect();
    let routed = endpoints().map(|(method, path)| (method.to_owned(), path.to_owned()));
    assert_eq!(described, routed.collect());
}

/// Each operation, with and without a token, for another host and from another origin.
#[tokio::test]
async fn tokens_hosts_and_origins_act_as_described() {
    let (document, operations) = described();
    let local = port().await;
    let (_folder, open) = open_port("server", None).await;
    let client = client("ca.pem", None);
    for (method, path) in operations {
        let operation = &document["paths"][&path][method.to_lowercase()];
        let real = path.replace("{pool}", "main").replace("{id}", "1");
        let request = format!("{method} {}", real.replace("{verb}", "rollback"));
        let is_order = method == "POST";
        // An empty object, and the end of the line that follows the headers.
        let body = "Content-Type: application/json\r\nContent-Length: 4\r\n\r\n{}";
        let body = if is_order { body } else { "" };
        let described = |text: &str| {
            let status = text["HTTP/1.1 ".len()..][..3].to_owned();
            let answer = &operation["responses"][&status];
            assert!(!answer.is_null(), "{request}: {text}");
            status
        };
        let ask = async |headers: &str| {
            let headers = format!("{headers}{body}");
            let text = secure(&client, open, &request, &headers).await.unwrap();
            described(&text)
        };
        let (needs, reads) = (
            json!([{"operatorToken": []}]),
            json!([{}, {"operatorToken": []}]),
        );
        let security = &operation["security"];
        let without = ask("Host: localhost\r\n").await;
        assert_eq!(without == "401", *security != json!([{}]), "{request}");
        let reader = ask(&bearer(READS)).await;
        assert_eq!(reader == "403", *security == needs, "{request}");
        assert_eq!(is_order, *security == needs, "{request}");
        assert_ne!(ask(&bearer(ORDERS)).await, "403", "{request}");
        assert_eq!(
            ask(&bearer(READS).replace("localhost", "a.example")).await,
            "421"
        );
        let page = format!("{}Origin: https://a.example\r\n", bearer(ORDERS));
        assert_eq!(ask(&page).await, "403", "{request}");
        // On loopback only orders need a token.
        if *security == reads {
            let text = answer(local, &real, "Host: localhost\r\n").await;
            assert!(["200", "404"].contains(&&*described(&text)), "{text}");
        }
    }
}
