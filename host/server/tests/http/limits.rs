use std::time::{Duration, Instant};

use super::bench::{ONE_ROW, Server};
use switchyard::ingress::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for a busy machine, short enough to notice a hang.
const PATIENCE: Duration = Duration::from_secs(20);

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut text))
        .await
        .unwrap();
    String::from_utf8(text).unwrap()
}

/// Reads one response, whose length its header tells.
async fn read_response(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut chunk = [0; 4096];
    loop {
        let read = timeout(PATIENCE, stream.read(&mut chunk))
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

/// A client that writes everything before it reads, as Python's do.
#[tokio::test]
async fn a_body_of_100_megabytes_is_refused_and_the_client_hears_it() {
    let server = Server::with_defaults().await;
    let mut stream = server.connect().await;
    let size = 100_000_000;
    let head = format!(
        "POST /v2/models/linear/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; size]).await.unwrap();
    let response = read_response(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    let says = "Content-Length: the body has 100000000 bytes, the limit is 67108864 bytes";
    assert!(response.contains(says), "{response}");

    // The connection is good for the next request.
    stream
        .write_all(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert!(read_response(&mut stream).await.starts_with("HTTP/1.1 200"));
}

/// The refusal does not wait for the body.
#[tokio::test]
async fn an_announced_length_is_refused_before_the_body_comes() {
    let server = Server::with_defaults().await;
    let mut stream = server.connect().await;
    let head =
        "POST /v2/models/linear/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let response = read_response(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
}

#[tokio::test]
async fn a_streamed_body_is_cut_at_the_limit() {
    let limits = Limits {
        max_body_bytes: 1000,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut stream = server.connect().await;
    let head =
        "POST /v2/models/linear/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
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
    let server = Server::with_defaults().await;
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..70 {
        bomb.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    let headers = [("content-encoding", "gzip")];
    let answer = server
        .post_with("/v2/models/linear/infer", &headers, bomb)
        .await;
    assert_eq!(answer.status, 413);
    assert!(
        answer.error().starts_with("Content-Encoding: "),
        "{}",
        answer.error()
    );
}

/// A body that nobody reads must not cost the client its answer.
#[tokio::test]
async fn a_refused_body_is_read_away_and_the_connection_kept() {
    let server = Server::with_defaults().await;
    let mut stream = server.connect().await;
    let size = 8 << 20;
    let head = format!(
        "POST /v2/models/liver/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; size]).await.unwrap();
    assert!(read_response(&mut stream).await.starts_with("HTTP/1.1 404"));
    stream
        .write_all(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert!(read_response(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn headers_past_their_limit_are_refused() {
    let limits = Limits {
        max_header_bytes: 2000,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut stream = server.connect().await;
    let head = format!(
        "GET /v2 HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n",
        "a".repeat(3000)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn a_slow_head_loses_its_connection() {
    let limits = Limits {
        header_read_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = Server::start(limits).await;
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
    let server = Server::start(limits).await;
    let mut stream = server.connect().await;
    let head =
        "POST /v2/models/linear/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{\"in";
    stream.write_all(head.as_bytes()).await.unwrap();
    let response = read_to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(
        response.contains("body: 4 bytes arrived within 100 ms"),
        "{response}"
    );
}

/// One more than may be served waits its turn, and gets it.
#[tokio::test]
async fn connections_past_the_limit_wait() {
    let limits = Limits {
        max_connections: 1,
        ..Limits::default()
    };
    let server = Server::start(limits).await;
    let mut first = server.connect().await;
    first
        .write_all(b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    read_response(&mut first).await;

    let mut second = server.connect().await;
    second
        .write_all(b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut byte = [0; 1];
    let waited = timeout(Duration::from_millis(200), second.read(&mut byte)).await;
    assert!(waited.is_err(), "served beside the first");
    drop(first);
    assert!(read_response(&mut second).await.starts_with("HTTP/1.1 200"));
}

/// A large accepted body, in many reads, is joined; this one is refused for its rows.
#[tokio::test]
async fn a_body_below_the_limit_is_read_whole() {
    let server = Server::with_defaults().await;
    let begun = Instant::now();
    let padding = " ".repeat(20 << 20);
    let answer = server
        .post("/v2/models/linear/infer", format!("{ONE_ROW}{padding}"))
        .await;
    assert_eq!(answer.status, 200);
    assert!(begun.elapsed() < PATIENCE);
}
