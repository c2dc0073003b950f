//! The end of a server with gRPC clients.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use switchyard_protocol::grpc::messages::inference::{ServerReadyRequest, ServerReadyResponse};
use switchyard_server::ingress::{Drained, Limits};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::client::{Client, Ended, SERVICE, frame, one_row};
use crate::http::test_bed::TestServer;

const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";

async fn wait_until_closed(server: &TestServer) {
    while TcpStream::connect(server.grpc).await.is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn accepted_calls_are_finished_and_then_the_connection_goes_away() {
    let mut server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(INFER, &[]).await;
    messages.send(frame(&one_row("gate"))).unwrap();
    drop(messages);
    let answer = tokio::spawn(answer);
    while server.backend.waiting.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    server.shut_down();
    wait_until_closed(&server).await;
    server.backend.gate.add_permits(1);
    let ended = Ended::read(answer.await.unwrap().unwrap()).await;
    assert_eq!((ended.code, ended.messages.len()), (0, 1));
    let went = timeout(Duration::from_secs(5), client.driving).await;
    assert!(
        went.unwrap().unwrap().is_ok(),
        "the connection ends without an error"
    );
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
}

#[tokio::test]
async fn readiness_falls_before_calls_are_refused() {
    let limits = Limits {
        drain_delay: Duration::from_millis(400),
        ..Limits::default()
    };
    let mut server = TestServer::start(limits).await;
    let mut client = Client::of(&server).await;
    server.shut_down();
    let path = format!("{SERVICE}ServerReady");
    let began = Instant::now();
    loop {
        let ended = client.call(&path, &ServerReadyRequest {}).await;
        if !ended.message::<ServerReadyResponse>().ready {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    client.infer(&one_row("linear")).await;
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
}

/// Idle connections and open streams do not hold the drain.
#[tokio::test]
async fn streams_without_a_message_end_with_the_reason() {
    let mut server = TestServer::with_defaults().await;
    let idle = Client::of(&server).await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client
        .open(&format!("{SERVICE}ModelStreamInfer"), &[])
        .await;
    messages.send(frame(&one_row("linear"))).unwrap();
    let mut body = answer.await.unwrap().into_body();
    assert!(body.frame().await.unwrap().unwrap().is_data());
    let began = Instant::now();
    server.shut_down();
    let trailers = body
        .frame()
        .await
        .unwrap()
        .unwrap()
        .into_trailers()
        .unwrap();
    assert_eq!(trailers["grpc-status"], "14");
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    drop((messages, idle));
}

/// The half does not arrive any more, but the inference before it was accepted.
#[tokio::test]
async fn half_a_message_does_not_cut_the_running_inference_of_its_stream() {
    let mut server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let stream = format!("{SERVICE}ModelStreamInfer");
    let (messages, answer) = client.open(&stream, &[]).await;
    messages.send(frame(&one_row("gate"))).unwrap();
    messages
        .send(frame(&one_row("linear")).slice(..20))
        .unwrap();
    let body = answer.await.unwrap().into_body();
    while server.backend.waiting.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    server.shut_down();
    sleep(Duration::from_secs(3)).await;
    server.backend.gate.add_permits(1);
    let answered = body.collect().await.unwrap();
    assert_eq!(answered.trailers().unwrap()["grpc-status"], "14");
    assert!(!answered.to_bytes().is_empty(), "the inference was cut");
    assert_eq!(server.drained().await, Drained { cut_connections: 0 });
}
