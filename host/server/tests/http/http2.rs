//! HTTP/2 on the HTTP port, with prior knowledge.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use switchyard_server::ingress::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Duration, sleep, timeout};

use super::test_bed::{ONE_ROW, TestServer};

/// The first bytes of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

async fn client(server: &TestServer) -> SendRequest<Full<Bytes>> {
    let stream = TokioIo::new(server.connect().await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::builder()
        .method(method)
        .uri(format!("http://test{path}"));
    request.body(Full::new(body.into())).unwrap()
}

async fn asked(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> (StatusCode, String) {
    sender.ready().await.unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn both_versions_give_the_same_answers() {
    let server = TestServer::with_defaults().await;
    let mut sender = client(&server).await;
    for (method, path, body) in [
        ("GET", "/v2/health/live", ""),
        ("GET", "/v2/models/linear", ""),
        ("GET", "/v2/models/absent", ""),
        ("POST", "/v2/models/linear/infer", ONE_ROW),
        ("POST", "/v2/models/linear/infer", "{"),
    ] {
        let over_one = match method {
            "GET" => server.get(path).await,
            _ => server.post(path, body).await,
        };
        let (status, text) = asked(&mut sender, request(method, path, body)).await;
        assert_eq!(status, over_one.status, "{path}");
        assert_eq!(text.as_bytes(), over_one.body, "{path}");
    }
}

#[tokio::test]
async fn a_connection_has_several_requests_at_a_time() {
    let server = TestServer::with_defaults().await;
    let mut sender = client(&server).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        sender.ready().await.unwrap();
        let infer = request("POST", "/v2/models/gate/infer", ONE_ROW);
        answers.push(sender.send_request(infer));
    }
    while server
        .backend
        .waiting
        .load(std::sync::atomic::Ordering::SeqCst)
        < 3
    {
        sleep(Duration::from_millis(5)).await;
    }
    let (status, _) = asked(&mut sender, request("GET", "/v2/health/live", "")).await;
    assert_eq!(status, StatusCode::OK);
    server.backend.gate.add_permits(3);
    for answer in answers {
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn headers_and_bodies_have_their_limits() {
    let limits = Limits {
        max_body_bytes: 1_000,
        max_header_bytes: 8 << 10,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut sender = client(&server).await;
    let large = request("POST", "/v2/models/linear/infer", vec![b' '; 2_000]);
    let (status, text) = asked(&mut sender, large).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{text}");
    let mut long = request("GET", "/v2/health/live", "");
    let value = "x".repeat(9 << 10).parse().unwrap();
    long.headers_mut().insert("x-long", value);
    sender.ready().await.unwrap();
    let refused = sender.send_request(long).await;
    let refused = refused.map(|answer| answer.status());
    assert!(!matches!(refused, Ok(StatusCode::OK)), "{refused:?}");
}

#[tokio::test]
async fn a_preface_in_pieces_is_known_and_one_that_stops_is_cut() {
    let limits = Limits {
        header_read_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    for piece in [&PREFACE[..1], &PREFACE[1..2], &PREFACE[2..]] {
        stream.write_all(piece).await.unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    // The server's settings: a frame of type 4.
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4);
    let mut stream = server.connect().await;
    stream.write_all(&PREFACE[..2]).await.unwrap();
    let mut rest = Vec::new();
    let ended = timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok());
}

#[tokio::test]
async fn a_drain_finishes_the_requests_of_a_connection() {
    let mut server = TestServer::with_defaults().await;
    let mut sender = client(&server).await;
    sender.ready().await.unwrap();
    let answer = sender.send_request(request("POST", "/v2/models/gate/infer", ONE_ROW));
    while server
        .backend
        .waiting
        .load(std::sync::atomic::Ordering::SeqCst)
        == 0
    {
        sleep(Duration::from_millis(5)).await;
    }
    server.shut_down();
    server.backend.gate.add_permits(1);
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.drained().await.cut_connections, 0);
}
