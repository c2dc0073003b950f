//! The admin port over a socket.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use switchyard_server::admin::{Admin, AdminPools, serve};
use switchyard_server::clock::Clock;
use switchyard_server::telemetry::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let registry = Registry::new();
    let admin = Admin::new(AdminPools::default(), registry, Clock::start());
    tokio::spawn(serve(listener, admin));
    address
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
