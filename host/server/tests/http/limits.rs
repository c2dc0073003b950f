use std::time::{Duration, Instant};

use super::test_bed::{ONE_ROW, TestServer};
use switchyard_server::ingress::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for a busy machine, short enough to notice a hang.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let _ = timeout(HANG_TIMEOUT, stream.read_to_end(&mut text))
        .await
        .unwrap();
    String::from_utf8(text).unwrap()
}

/// Sends the head of an inference, with one further header.
async fn send_head(stream: &mut TcpStream, app: &str, header: &str) {
    let head = format!("POST /v2/models/{app}/infer HTTP/1.1\r\nhost: x\r\n{header}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
}

/// Reads one response of the length in its header.
async fn read_response(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut chunk = [0; 4096];
    loop {
        let read = timeout(HANG_TIMEOUT, stream.read(&mut chunk))
            .await
            .unwrap()
            .unwrap();
        assert_ne!(read, 0, "the connection closed after {text:?}");
        text.push_str(str::from_utf8(&chunk[..read]).unwrap());
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                return text;
            }
        }
    }
}

const METADATA: &[u8] = b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n";

/// Asks for the metadata, which the connection must serve.
async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(METADATA).await.unwrap();
    let answer = read_response(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// A client that writes its whole request before it reads, as Python's do.
#[tokio::test]
async fn a_body_of_100_megabytes_is_refused_and_the_client_gets_the_answer() {
    let server = TestServer::with_defaults().await;
    let mut stream = server.connect().await;
    let size = 100_000_000;
    send_head(&mut stream, "linear", &format!("content-length: {size}")).await;
    stream.write_all(&vec![b' '; size]).await.unwrap();
    let response = read_response(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    let message = "Content-Length: the body has 100000000 bytes, the limit is 67072 bytes for 8 rows \
                   of app \\\"linear\\\" (server.rows_max)";
    assert!(response.contains(message), "{response}");

    // The connection serves the next request.
    ask(&mut stream).await;
}

#[tokio::test]
async fn an_announced_length_is_refused_before_the_body_comes() {
    let server = TestServer::with_defaults().await;
    let mut stream = server.connect().await;
    send_head(&mut stream, "linear", "content-length: 100000000").await;
    let response = read_response(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
}

/// The largest legal request of an app is far below the limit of all requests.
#[tokio::test]
async fn an_app_refuses_more_than_its_largest_request_before_it_is_read() {
    let server = TestServer::with_defaults().await;
    for (app, header, length, status) in [
        ("linear", "x: y", 67_073, "413"),
        ("linear", "x: y", 67_072, "200"),
        ("linear", "inference-header-content-length: 0", 97, "413"),
        ("linear", "inference-header-content-length: 0", 96, "200"),
        ("echo/every%20type", "x: y", 67_108_865, "413"),
        ("echo/every%20type", "x: y", 67_073, "400"),
    ] {
        let mut stream = server.connect().await;
        let headers = format!("{header}\r\ncontent-length: {length}");
        send_head(&mut stream, app, &headers).await;
        if status != "413" {
            let mut body = if length == 96 {
                vec![0; length]
            } else {
                ONE_ROW.as_bytes().to_vec()
            };
            body.resize(length, b' ');
            stream.write_all(&body).await.unwrap();
        }
        let mut begin = [0; 12];
        let read = timeout(HANG_TIMEOUT, stream.read_exact(&mut begin)).await;
        read.unwrap().unwrap();
        let expected = format!("HTTP/1.1 {status}");
        assert_eq!(begin, *expected.as_bytes(), "{app} {length}");
    }
}

#[tokio::test]
async fn a_streamed_body_is_cut_at_the_limit() {
    let limits = Limits {
        max_body_bytes: 1000,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    send_head(&mut stream, "linear", "transfer-encoding: chunked").await;
    for _ in 0..3 {
        let chunk = format!("190\r\n{}\r\n", " ".repeat(400));
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    let response = read_response(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    assert!(
        response.contains("body: the body has more than 1000 bytes"),
        "{response}"
    );
}

#[tokio::test]
async fn a_body_may_not_unpack_past_the_limit() {
    use std::io::Write;
    let server = TestServer::with_defaults().await;
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..70 {
        bomb.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    let headers = [("content-encoding", "gzip")];
    let answer = server
        .post_with("/v2/models/echo/every%20type/infer", &headers, bomb)
        .await;
    assert_eq!(answer.status, 413);
    assert!(
        answer.error().starts_with("Content-Encoding: "),
        "{}",
        answer.error()
    );
}

#[tokio::test]
async fn a_refused_body_is_discarded_and_the_connection_kept() {
    let server = TestServer::with_defaults().await;
    let mut stream = server.connect().await;
    let size = 8 << 20;
    send_head(&mut stream, "liver", &format!("content-length: {size}")).await;
    stream.write_all(&vec![b' '; size]).await.unwrap();
    assert!(read_response(&mut stream).await.starts_with("HTTP/1.1 404"));
    ask(&mut stream).await;
}

#[tokio::test]
async fn headers_past_their_limit_are_refused() {
    let limits = Limits {
        max_header_bytes: 2000,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    let head = format!(
        "GET /v2 HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n",
        "a".repeat(3000)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn the_connection_of_a_slow_head_is_closed() {
    let limits = Limits {
        header_read_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET /v2 HTTP/1.1\r\nhost:")
        .await
        .unwrap();
    assert!(!read_to_end(&mut stream).await.contains("200"));
}

#[tokio::test]
async fn a_slow_body_is_answered_408() {
    let limits = Limits {
        body_read_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    // In one write, so that the bytes of the body are not late.
    let head =
        "POST /v2/models/linear/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{\"in";
    stream.write_all(head.as_bytes()).await.unwrap();
    let response = read_to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(
        response.contains("body: only 4 bytes arrived within the limit of 100 ms"),
        "{response}"
    );
}

fn at_most(max_connections: usize) -> Limits {
    Limits {
        max_connections,
        ..Limits::default()
    }
}

/// A connection above the limit waits while the others are busy; the next answer then closes its
/// connection.
#[tokio::test]
async fn connections_past_the_limit_wait() {
    let server = TestServer::start(at_most(1)).await;
    let mut first = server.connect().await;
    let length = format!("content-length: {}", ONE_ROW.len());
    send_head(&mut first, "gate", &length).await;
    first.write_all(ONE_ROW.as_bytes()).await.unwrap();

    let mut second = server.connect().await;
    second.write_all(METADATA).await.unwrap();
    let mut byte = [0; 1];
    let waited = timeout(Duration::from_millis(400), second.read(&mut byte)).await;
    assert!(waited.is_err(), "served at the same time as the first");
    server.backend.gate.add_permits(1);
    let answer = read_to_end(&mut first).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(read_response(&mut second).await.starts_with("HTTP/1.1 200"));
}

/// No client closes its connection, and each gets its answer long before the idle timeout of
/// `header_read_timeout`.
#[tokio::test]
async fn idle_connections_end_for_those_that_wait() {
    let server = TestServer::start(at_most(3)).await;
    let mut kept = Vec::new();
    for _ in 0..6 {
        let mut stream = server.connect().await;
        ask(&mut stream).await;
        kept.push(stream);
    }
    let mut asking = Vec::new();
    for _ in 0..12 {
        let mut stream = server.connect().await;
        asking.push(tokio::spawn(async move {
            ask(&mut stream).await;
            stream
        }));
    }
    for asked in asking {
        kept.push(asked.await.unwrap());
    }
    assert_eq!(kept.len(), 18);
}

#[tokio::test]
async fn silent_connections_end_for_those_that_wait() {
    let server = TestServer::start(at_most(1)).await;
    let mut silent = server.connect().await;
    let mut stream = server.connect().await;
    ask(&mut stream).await;
    assert_eq!(read_to_end(&mut silent).await, "");
}

/// At the limit, but without a connection that waits.
#[tokio::test]
async fn idle_connections_are_kept_while_none_waits() {
    let server = TestServer::start(at_most(2)).await;
    let mut streams = [server.connect().await, server.connect().await];
    for _ in 0..2 {
        for stream in &mut streams {
            let answer = ask(stream).await;
            assert!(!answer.contains("connection: close"), "{answer}");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// In many reads.
#[tokio::test]
async fn a_body_below_the_limit_is_read_whole() {
    let server = TestServer::with_defaults().await;
    let begun = Instant::now();
    let padding = " ".repeat(20 << 20);
    let outputs = r#"[{"name":"BOOL"}]"#;
    let body = format!(r#"{padding}{{"inputs":[],"outputs":{outputs}}}"#);
    let infer = "/v2/models/echo/every%20type/infer";
    let answer = server.post(infer, body).await;
    assert_eq!(answer.error(), "inputs: \"BOOL\" is missing");
    assert!(begun.elapsed() < HANG_TIMEOUT);
}
