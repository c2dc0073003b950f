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

const METADATA: &[u8] = b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n";

fn of_connections(max_connections: usize) -> Limits {
    Limits {
        max_connections,
        ..Limits::default()
    }
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(METADATA).await.unwrap();
    let answer = read_response(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// One more than may be served waits while the others are busy. Whoever is answered then gives
/// its place up.
#[tokio::test]
async fn connections_past_the_limit_wait() {
    let server = Server::start(of_connections(1)).await;
    let mut first = server.connect().await;
    let length = ONE_ROW.len();
    let head = format!(
        "POST /v2/models/gate/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n"
    );
    first
        .write_all(format!("{head}{ONE_ROW}").as_bytes())
        .await
        .unwrap();

    let mut second = server.connect().await;
    second.write_all(METADATA).await.unwrap();
    let mut byte = [0; 1];
    let waited = timeout(Duration::from_millis(400), second.read(&mut byte)).await;
    assert!(waited.is_err(), "served beside the first");
    server.bench.gate.add_permits(1);
    let answer = read_to_end(&mut first).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(read_response(&mut second).await.starts_with("HTTP/1.1 200"));
}

/// None of these clients ever closes its connection, and each has its answer long before the
/// server would give an idle connection up.
#[tokio::test]
async fn kept_alive_connections_give_way_to_those_that_wait() {
    let server = Server::start(of_connections(3)).await;
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

/// Also one that connects and then says nothing.
#[tokio::test]
async fn silent_connections_give_way_to_those_that_wait() {
    let server = Server::start(of_connections(1)).await;
    let mut silent = server.connect().await;
    let mut stream = server.connect().await;
    ask(&mut stream).await;
    assert_eq!(read_to_end(&mut silent).await, "");
}

/// At the limit, but nobody waits.
#[tokio::test]
async fn idle_connections_are_kept_while_nobody_waits() {
    let server = Server::start(of_connections(2)).await;
    let mut streams = [server.connect().await, server.connect().await];
    for _ in 0..2 {
        for stream in &mut streams {
            let answer = ask(stream).await;
            assert!(!answer.contains("connection: close"), "{answer}");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
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
