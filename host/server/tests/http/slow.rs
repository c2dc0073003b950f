//! Clients that send or read slowly, leave early, or take many connections.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;
use switchyard_server::ingress::{Datatype, Drained, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use super::test_bed::{ONE_ROW, TestServer};

/// Long enough for a busy machine, and shorter than every default timeout that a test must not
/// wait for.
const SOON: Duration = Duration::from_secs(9);

/// An answer of several kilobytes.
const LONG: &[u8] = b"GET /v2/models/echo/every%20type/config HTTP/1.1\r\nhost: x\r\n\r\n";

fn one_connection() -> Limits {
    Limits {
        max_connections: 1,
        ..Limits::default()
    }
}

/// Another client is served soon.
async fn assert_served(server: &TestServer) {
    let served = timeout(SOON, server.get("/v2/health/live")).await;
    assert_eq!(served.unwrap().status, 200);
}

fn head(app: &str, length: usize) -> String {
    format!("POST /v2/models/{app}/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n")
}

async fn connect_with_small_buffer(server: &TestServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// Asks and never reads, until the connection does not take another byte for a while.
async fn never_read(stream: &mut TcpStream) {
    let requests = LONG.repeat(100);
    while let Ok(sent) = timeout(Duration::from_millis(300), stream.write_all(&requests)).await {
        sent.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_never_reads_loses_its_connection() {
    let limits = Limits {
        write_timeout: Duration::from_millis(500),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = connect_with_small_buffer(&server).await;
    let asked = async { while stream.write_all(LONG).await.is_ok() {} };
    timeout(SOON, asked).await.unwrap();
}

#[tokio::test]
async fn unread_answers_end_for_connections_that_wait() {
    let server = TestServer::start(one_connection()).await;
    let mut stream = connect_with_small_buffer(&server).await;
    never_read(&mut stream).await;
    assert_served(&server).await;
    drop(stream);
}

#[tokio::test]
async fn unread_answers_do_not_hold_the_drain() {
    let mut server = TestServer::with_defaults().await;
    let mut stream = connect_with_small_buffer(&server).await;
    never_read(&mut stream).await;
    server.shut_down();
    let drained = timeout(SOON, server.drained()).await.unwrap();
    assert_eq!(drained, Drained { cut_connections: 1 });
}

/// Bytes that the kernel's buffers do not hold.
const LONG_ANSWER: usize = 32 << 20;

/// Asks for an answer of this length, and waits for its first bytes.
async fn long_answer(server: &TestServer) -> TcpStream {
    let input = |datatype: Datatype| {
        let name = datatype.name();
        let bytes = if name == "UINT8" { LONG_ANSWER } else { 0 };
        let parameters = json!({"binary_data_size": bytes});
        json!({"name": name, "datatype": name, "shape": [1, bytes], "parameters": parameters})
    };
    let inputs: Vec<_> = Datatype::ALL.into_iter().map(input).collect();
    let outputs = [json!({"name": "UINT8", "parameters": {"binary_data": true}})];
    let json = json!({"inputs": inputs, "outputs": outputs}).to_string();
    let head = head("echo/every%20type", json.len() + LONG_ANSWER);
    let json_length = format!("\r\ninference-header-content-length: {}\r\n", json.len());
    let head = head.replacen("\r\n", &json_length, 1);
    let mut stream = server.connect().await;
    stream.write_all((head + &json).as_bytes()).await.unwrap();
    stream.write_all(&vec![7; LONG_ANSWER]).await.unwrap();
    let mut first = [0; 12];
    stream.peek(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn an_answer_that_is_read_is_whole_after_the_drain() {
    let mut server = TestServer::with_defaults().await;
    let mut stream = long_answer(&server).await;
    server.shut_down();
    let begun = Instant::now();
    let (mut read, mut chunk) = (0, vec![0; 128 << 10]);
    loop {
        match stream.read(&mut chunk).await.unwrap() {
            0 => break,
            bytes => read += bytes,
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert!(read > LONG_ANSWER, "{read} bytes of {LONG_ANSWER}");
    assert!(begun.elapsed() > Duration::from_secs(2), "too fast to tell");
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
}

#[tokio::test]
async fn an_answer_that_is_not_read_on_does_not_hold_the_drain() {
    let mut server = TestServer::with_defaults().await;
    let mut stream = long_answer(&server).await;
    server.shut_down();
    let (begun, mut chunk) = (Instant::now(), vec![0; 128 << 10]);
    while begun.elapsed() < Duration::from_millis(1_500) {
        assert_ne!(stream.read(&mut chunk).await.unwrap(), 0);
        sleep(Duration::from_millis(20)).await;
    }
    let drained = timeout(SOON, server.drained()).await.unwrap();
    assert_eq!(drained, Drained { cut_connections: 1 });
}

#[tokio::test]
async fn a_body_that_drips_does_not_hold_the_drain() {
    let mut server = TestServer::with_defaults().await;
    let mut stream = server.connect().await;
    let head = head("linear", 5_000);
    stream.write_all(head.as_bytes()).await.unwrap();
    let dripping = tokio::spawn(async move {
        while stream.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    });
    sleep(Duration::from_millis(200)).await;
    server.shut_down();
    let begun = Instant::now();
    let drained = timeout(SOON, server.drained()).await.unwrap();
    assert_eq!(drained, Drained { cut_connections: 1 });
    // Before the answer 408, which comes after five seconds.
    assert!(begun.elapsed() < Duration::from_secs(4));
    dripping.await.unwrap();
}

#[tokio::test]
async fn a_client_that_reads_slowly_keeps_its_connection() {
    let limits = Limits {
        write_timeout: Duration::from_secs(2),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let (mut reading, mut writing) = server.connect().await.into_split();
    let asking = tokio::spawn(async move { while writing.write_all(LONG).await.is_ok() {} });
    // The server's answers wait all the time. The kernel takes more of them in steps of up to a
    // megabyte.
    let mut chunk = vec![0; 128 << 10];
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        assert_ne!(reading.read(&mut chunk).await.unwrap(), 0);
        sleep(Duration::from_millis(20)).await;
    }
    asking.abort();
}

#[tokio::test]
async fn half_a_head_ends_for_connections_that_wait() {
    let server = TestServer::start(one_connection()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /v2 HTTP/1.1\r\nho").await.unwrap();
    assert_served(&server).await;
}

#[tokio::test]
async fn half_a_body_ends_for_connections_that_wait() {
    let server = TestServer::start(one_connection()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(head("linear", 500).as_bytes())
        .await
        .unwrap();
    let dripping = tokio::spawn(async move {
        while stream.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    });
    assert_served(&server).await;
    dripping.await.unwrap();
}

/// Every connection is a half-read head, and its client opens another one when it is closed.
#[tokio::test]
async fn a_flood_of_half_read_heads_does_not_stop_other_clients() {
    let limits = Limits {
        max_connections: 64,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    for _ in 0..80 {
        let address = server.address;
        tokio::spawn(async move {
            loop {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let _ = stream.write_all(b"GET /v2").await;
                let _ = stream.read(&mut [0]).await;
            }
        });
    }
    sleep(Duration::from_millis(300)).await;
    for _ in 0..3 {
        assert_served(&server).await;
    }
}

#[tokio::test]
async fn a_head_that_drips_in_is_closed() {
    let limits = Limits {
        head_timeout: Duration::from_millis(500),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /v2 HTTP/1.1\r\nx: ").await.unwrap();
    let dripping = async {
        while stream.write_all(b"y").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, dripping).await.unwrap();
}

/// Idle time is not part of a head.
#[tokio::test]
async fn an_idle_connection_outlives_the_limit_of_a_head() {
    let limits = Limits {
        head_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut stream = server.connect().await;
    for _ in 0..2 {
        sleep(Duration::from_millis(1_500)).await;
        let request = format!("{}{ONE_ROW}", head("linear", ONE_ROW.len()));
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let read = stream.read(&mut answer).await.unwrap();
        assert!(answer[..read].starts_with(b"HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn a_body_below_the_least_rate_is_answered_408() {
    let limits = Limits {
        body_read_timeout: Duration::from_secs(60),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let (mut reading, mut writing) = server.connect().await.into_split();
    writing
        .write_all(head("linear", 5_000).as_bytes())
        .await
        .unwrap();
    let dripping = tokio::spawn(async move {
        while writing.write_all(b"    ").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    });
    let mut answer = String::new();
    let read = reading.read_to_string(&mut answer);
    let _ = timeout(SOON, read).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(
        answer.contains("the least rate is 1024 bytes/s"),
        "{answer}"
    );
    dripping.await.unwrap();
}

async fn connect_from(server: &TestServer, client: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let client: SocketAddr = client.parse().unwrap();
    socket.bind(client).unwrap();
    socket.connect(server.address).await.unwrap()
}

#[tokio::test]
async fn a_client_address_has_its_share_of_connections() {
    let limits = Limits {
        max_connections_per_client: 2,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let _held = [server.connect().await, server.connect().await];
    let mut third = server.connect().await;
    let mut answer = String::new();
    let read = third.read_to_string(&mut answer);
    timeout(SOON, read).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("connections_per_client_max"), "{answer}");
    assert_eq!(*server.backend.refused.lock().unwrap(), [(None, 503)]);

    let mut other = connect_from(&server, "127.0.0.2:0").await;
    other.write_all(LONG).await.unwrap();
    let mut byte = [0];
    assert_eq!(other.read(&mut byte).await.unwrap(), 1);
}

async fn at_the_gate(server: &TestServer) -> TcpStream {
    let mut stream = server.connect().await;
    let request = format!("{}{ONE_ROW}", head("gate", ONE_ROW.len()));
    stream.write_all(request.as_bytes()).await.unwrap();
    while server.backend.waiting.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    stream
}

#[tokio::test]
async fn a_half_closed_client_gets_its_answer() {
    let server = TestServer::with_defaults().await;
    let mut stream = at_the_gate(&server).await;
    stream.shutdown().await.unwrap();
    sleep(Duration::from_millis(100)).await;
    server.backend.gate.add_permits(1);
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    timeout(SOON, read).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with('}'), "{answer}");
}

#[tokio::test]
async fn the_call_of_a_client_that_has_gone_is_dropped() {
    let server = TestServer::with_defaults().await;
    drop(at_the_gate(&server).await);
    let begun = Instant::now();
    while server.backend.abandoned.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < SOON);
        sleep(Duration::from_millis(20)).await;
    }
}

/// The only HTTP thread is busy, and hundreds of requests are under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flood_of_requests_does_not_hold_up_a_health_check() {
    let server = TestServer::with_defaults().await;
    let request = format!("{}{ONE_ROW}", head("gate", ONE_ROW.len()));
    let mut flood = Vec::new();
    for _ in 0..300 {
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        flood.push(stream);
    }
    while server.backend.waiting.load(Ordering::SeqCst) < flood.len() {
        sleep(Duration::from_millis(5)).await;
    }
    let busy = Duration::from_secs(4);
    tokio::spawn(async move { std::thread::sleep(busy) });

    let (address, began) = (server.address, Instant::now());
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let check = b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n";
    std::io::Write::write_all(&mut stream, check).unwrap();
    // To the end: the connection closes, so that inferences on it are left to the HTTP threads.
    let answer = std::io::read_to_string(&mut stream).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(began.elapsed() < busy / 2, "{:?}", began.elapsed());
}
