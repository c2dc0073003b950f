use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::test_bed::{ONE_ROW, TestServer};
use switchyard_server::ingress::{Drained, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

fn infer(app: &str) -> String {
    format!(
        "POST /v2/models/{app}/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{ONE_ROW}",
        ONE_ROW.len()
    )
}

async fn wait_for_a_call(server: &TestServer) {
    while server.backend.waiting.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(5)).await;
    }
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).await;
    text
}

/// Waits until the listener is closed, the first step of a drain.
async fn wait_until_closed(server: &TestServer) {
    while TcpStream::connect(server.address).await.is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn requests_in_flight_are_finished() {
    let mut server = TestServer::with_defaults().await;
    let mut stream = server.connect().await;
    stream.write_all(infer("gate").as_bytes()).await.unwrap();
    wait_for_a_call(&server).await;
    server.shut_down();
    wait_until_closed(&server).await;
    server.backend.gate.add_permits(1);
    let response = read_to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
}

/// Requests whose head was partly read when the drain began.
#[tokio::test]
async fn requests_during_the_drain_are_refused() {
    let mut server = TestServer::with_defaults().await;
    let mut held = server.connect().await;
    held.write_all(infer("gate").as_bytes()).await.unwrap();
    wait_for_a_call(&server).await;

    let heads = [
        (
            "GET /v2/health/ready HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
            "503",
        ),
        (
            "GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
            "200",
        ),
        (infer("linear"), "503"),
    ];
    let mut streams = Vec::new();
    for (request, _) in &heads {
        let mut stream = server.connect().await;
        stream.write_all(&request.as_bytes()[..10]).await.unwrap();
        streams.push(stream);
    }
    // Without the first bytes of a request the server closes the connection as idle.
    sleep(Duration::from_millis(200)).await;
    server.shut_down();
    wait_until_closed(&server).await;
    for ((request, status), stream) in heads.iter().zip(&mut streams) {
        stream.write_all(&request.as_bytes()[10..]).await.unwrap();
        let response = read_to_end(stream).await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status}")),
            "{response}"
        );
        let refused = response.contains("draining: the server is shutting down");
        assert_eq!(refused, *status == "503", "{response}");
    }
    server.backend.gate.add_permits(1);
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
}

/// Until balancers know that readiness has fallen, their requests are served.
#[tokio::test]
async fn requests_are_served_for_the_drain_delay() {
    let limits = Limits {
        drain_delay: Duration::from_secs(2),
        ..Limits::default()
    };
    let mut server = TestServer::start(limits).await;
    let begun = Instant::now();
    server.shut_down();
    while server.get("/v2/health/ready").await.status == 200 {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.get("/v2/health/ready").await.status, 503);
    assert_eq!(server.get("/v2/health/live").await.status, 200);
    let answer = server.post("/v2/models/linear/infer", ONE_ROW).await;
    assert_eq!(answer.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(2), "too slow to tell");
    wait_until_closed(&server).await;
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
}

#[tokio::test]
async fn idle_connections_do_not_hold_the_drain() {
    let mut server = TestServer::with_defaults().await;
    let mut idle = server.connect().await;
    idle.write_all(b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut chunk = [0; 4096];
    assert_ne!(idle.read(&mut chunk).await.unwrap(), 0);
    let begun = Instant::now();
    server.shut_down();
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(idle.read(&mut chunk).await.unwrap(), 0);
}

#[tokio::test]
async fn connections_past_the_drain_timeout_are_cut() {
    let limits = Limits {
        drain_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let mut server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    stream.write_all(infer("gate").as_bytes()).await.unwrap();
    wait_for_a_call(&server).await;
    server.shut_down();
    assert_eq!(server.drained().await, Drained { cut_connections: 1 });
    assert_eq!(read_to_end(&mut stream).await, "");
}
