//! Limits of a connection, of a message and of all of them together.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use switchyard_server::ingress::Limits;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::client::{Client, Ended, frame, one_row};
use crate::http::test_bed::TestServer;

const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_by_its_length() {
    let limits = Limits {
        max_body_bytes: 1_000,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(INFER, &[]).await;
    // The body never comes.
    messages
        .send(Bytes::from_static(&[0, 0, 0, 3, 233]))
        .unwrap();
    let ended = Ended::read(answer.await.unwrap()).await;
    assert_eq!(
        ended.failure(),
        (
            8,
            "body: the body has 1001 bytes in one message, the limit is 1000 bytes"
        )
    );
    client.infer(&one_row("linear")).await;
}

/// Each app has a limit of its own, below that of all requests.
#[tokio::test]
async fn a_message_that_is_too_large_for_its_app_is_refused_by_its_length() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(INFER, &[]).await;
    // The prefix and the name of the app; the rest never comes.
    let begin = [&[0, 0, 16, 0, 0, 0x0a, 6][..], b"linear"].concat();
    messages.send(begin.into()).unwrap();
    let ended = Ended::read(answer.await.unwrap()).await;
    let (code, text) = ended.failure();
    assert_eq!(code, 8);
    assert!(
        text.starts_with(
            "body: the body has 1048576 bytes in one message, the limit is 65824 bytes"
        ),
        "{text}"
    );
    assert!(text.contains("for 8 rows of app \"linear\""), "{text}");
    // The same of a whole message with other fields before the name.
    let mut message = vec![0x3a];
    prost::encoding::encode_varint(70_000, &mut message);
    message.extend(vec![0; 70_000]);
    message.extend([&[0x0a, 6][..], b"linear"].concat());
    let mut framed = vec![0];
    framed.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend(message);
    let ended = client.call_with(INFER, &[], framed.into()).await;
    let (code, text) = ended.failure();
    assert_eq!(code, 8);
    assert!(text.contains("the limit is 65824 bytes"), "{text}");
    client.infer(&one_row("linear")).await;
}

#[tokio::test]
async fn all_messages_share_the_memory_of_requests() {
    let limits = Limits {
        max_body_bytes: 1 << 20,
        request_memory_bytes: 1 << 20,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut client = Client::of(&server).await;
    let (held, _answer) = client.open(INFER, &[]).await;
    held.send([&[0, 0, 15, 0, 0][..], &vec![0; 900 << 10]].concat().into())
        .unwrap();
    sleep(Duration::from_millis(200)).await;
    let mut other = Client::of(&server).await;
    let body = [&[0, 0, 8, 0, 0][..], &vec![0; 512 << 10]].concat();
    let ended = other.call_with(INFER, &[], body.into()).await;
    assert_eq!(ended.code, 14);
    assert!(
        ended.text.starts_with("busy: the bodies of other requests"),
        "{}",
        ended.text
    );
    assert_eq!(ended.trailers["grpc-retry-pushback-ms"], "1000");
}

#[tokio::test]
async fn a_message_that_does_not_arrive_ends_its_call() {
    let limits = Limits {
        body_read_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(INFER, &[]).await;
    messages.send(frame(&one_row("linear")).slice(..9)).unwrap();
    let ended = Ended::read(answer.await.unwrap()).await;
    assert_eq!(
        ended.failure(),
        (4, "body: only 9 bytes arrived within the limit of 200 ms")
    );
    drop(messages);
    // Nor does one of which no byte comes hold its call.
    let (messages, answer) = client.open(INFER, &[]).await;
    let ended = Ended::read(answer.await.unwrap()).await;
    assert_eq!(
        ended.failure(),
        (4, "body: only 0 bytes arrived within the limit of 200 ms")
    );
    drop(messages);
}

/// The client knows the limit from the settings, and lets further calls wait.
#[tokio::test]
async fn calls_above_the_streams_of_a_connection_wait() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    client.infer(&one_row("linear")).await;
    let mut answers = Vec::new();
    for _ in 0..140 {
        let (messages, answer) = client.open(INFER, &[]).await;
        messages.send(frame(&one_row("gate"))).unwrap();
        answers.push(tokio::spawn(answer));
    }
    let began = Instant::now();
    while server.backend.waiting.load(Ordering::SeqCst) < 128 {
        assert!(began.elapsed() < Duration::from_secs(10));
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_millis(100)).await;
    assert_eq!(server.backend.waiting.load(Ordering::SeqCst), 128);
    server.backend.gate.add_permits(140);
    for answer in answers {
        let ended = Ended::read(answer.await.unwrap().unwrap()).await;
        assert_eq!(ended.code, 0);
    }
}

#[tokio::test]
async fn a_connection_above_the_share_of_its_client_is_told_so() {
    let limits = Limits {
        max_connections_per_client: 1,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut client = Client::of(&server).await;
    client.infer(&one_row("linear")).await;
    let mut refused = TcpStream::connect(server.grpc).await.unwrap();
    let mut frames = Vec::new();
    let read = timeout(Duration::from_secs(5), refused.read_to_end(&mut frames)).await;
    read.unwrap().unwrap();
    // Settings, then a GOAWAY.
    assert_eq!(frames[3], 4);
    assert_eq!(frames[9 + 3], 7);
    let text = String::from_utf8_lossy(&frames[9 + 17..]);
    assert!(
        text.starts_with("connections: this client has 1 of them"),
        "{text}"
    );
    assert_eq!(*server.backend.refused.lock().unwrap(), [(None, 503)]);
}

/// One connection of either port makes room for another one.
#[tokio::test]
async fn an_idle_connection_ends_for_one_that_waits() {
    let limits = Limits {
        max_connections: 1,
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut idle = Client::of(&server).await;
    idle.infer(&one_row("linear")).await;
    let waited = timeout(Duration::from_secs(5), server.get("/v2/health/live")).await;
    assert_eq!(waited.unwrap().status, 200);
    let ended = timeout(Duration::from_secs(5), idle.driving).await;
    assert!(
        ended.unwrap().unwrap().is_ok(),
        "it was asked to end, not cut"
    );
}

#[tokio::test]
async fn a_connection_without_calls_ends_and_an_open_stream_keeps_it() {
    let limits = Limits {
        header_read_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let path = "/inference.GRPCInferenceService/ModelStreamInfer";
    let mut streaming = Client::of(&server).await;
    let (messages, answer) = streaming.open(path, &[]).await;
    let mut idle = Client::of(&server).await;
    idle.infer(&one_row("linear")).await;
    let silent = TcpStream::connect(server.grpc).await.unwrap();
    let ended = timeout(Duration::from_secs(5), idle.driving).await;
    assert!(ended.unwrap().unwrap().is_ok());
    messages.send(frame(&one_row("linear"))).unwrap();
    let mut body = answer.await.unwrap().into_body();
    assert!(body.frame().await.unwrap().unwrap().is_data());
    drop(silent);
}

/// The answers stay in the server, and the connection ends.
#[tokio::test]
async fn a_client_that_never_reads_is_cut() {
    let limits = Limits {
        write_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = TestServer::start(limits).await;
    let mut client = Client::with(&server, |builder| {
        builder.initial_stream_window_size(0);
    })
    .await;
    let (messages, answer) = client.open(INFER, &[]).await;
    messages.send(frame(&one_row("linear"))).unwrap();
    drop(messages);
    let response = answer.await.unwrap();
    let ended = timeout(Duration::from_secs(10), client.driving).await;
    assert!(ended.is_ok(), "it holds its connection");
    assert!(response.into_body().collect().await.is_err());
}
