//! Deadlines of clients, and calls that clients give up.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::client::{Client, Ended, frame, one_row};
use crate::http::test_bed::TestServer;

const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";

async fn until(mut holds: impl FnMut() -> bool) {
    let waited = timeout(Duration::from_secs(10), async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("within 10 s");
}

#[tokio::test]
async fn the_client_s_timeout_is_the_deadline_of_the_request() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let body = || frame(&one_row("linear"));
    for (header, most) in [("2S", 2_000_000), ("300000u", 300_000), ("9H", 60_000_000)] {
        let ended = client
            .call_with(INFER, &[("grpc-timeout", header)], body())
            .await;
        assert_eq!(ended.code, 0);
        let call = server.backend.last_call.lock().unwrap().clone().unwrap();
        let left = call.timeout_us.unwrap();
        assert!(left <= most && left > most / 2, "{header}: {left}");
    }
    let ended = client
        .call_with(INFER, &[("grpc-timeout", "1n")], body())
        .await;
    assert_eq!(ended.code, 4);
    assert!(
        ended.text.starts_with("dropped: no answer was possible"),
        "{}",
        ended.text
    );
}

/// The time that the body takes counts.
#[tokio::test]
async fn a_message_that_arrives_after_the_client_s_time_is_not_computed() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(INFER, &[("grpc-timeout", "100m")]).await;
    let body = frame(&one_row("linear"));
    messages.send(body.slice(..9)).unwrap();
    sleep(Duration::from_millis(150)).await;
    messages.send(body.slice(9..)).unwrap();
    drop(messages);
    let ended = Ended::read(answer.await.unwrap()).await;
    assert_eq!(ended.code, 4);
    assert!(server.backend.last_call.lock().unwrap().is_none());
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_its_connection_serves_on() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(INFER, &[]).await;
    messages.send(frame(&one_row("gate"))).unwrap();
    drop(messages);
    let waiting = tokio::spawn(answer);
    until(|| server.backend.waiting.load(Ordering::SeqCst) == 1).await;
    waiting.abort();
    until(|| server.backend.abandoned.load(Ordering::SeqCst) == 1).await;
    client.infer(&one_row("linear")).await;
}

#[tokio::test]
async fn the_calls_of_a_client_that_has_gone_are_dropped() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let (messages, answer) = client.open(INFER, &[]).await;
        messages.send(frame(&one_row("gate"))).unwrap();
        answers.push(tokio::spawn(answer));
    }
    until(|| server.backend.waiting.load(Ordering::SeqCst) == 3).await;
    client.go();
    until(|| server.backend.abandoned.load(Ordering::SeqCst) == 3).await;
}

#[tokio::test]
async fn a_stream_that_is_given_up_ends_its_inferences() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let path = "/inference.GRPCInferenceService/ModelStreamInfer";
    let (messages, answer) = client.open(path, &[]).await;
    messages.send(frame(&one_row("gate"))).unwrap();
    messages.send(frame(&one_row("gate"))).unwrap();
    let response = answer.await.unwrap();
    until(|| server.backend.waiting.load(Ordering::SeqCst) == 2).await;
    drop((response, messages));
    until(|| server.backend.abandoned.load(Ordering::SeqCst) == 2).await;
}
