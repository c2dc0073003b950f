//! Streams of inferences.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message as _;
use switchyard_protocol::grpc::messages::inference::infer_parameter::ParameterChoice;
use switchyard_protocol::grpc::messages::inference::{ModelInferRequest, ModelStreamInferResponse};
use tokio::time::sleep;

use super::client::{Client, Ended, frame, one_row};
use crate::http::test_bed::TestServer;

const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

/// Reads the messages of a body one by one.
struct Reader {
    body: Incoming,
    received: BytesMut,
}

impl Reader {
    async fn next(&mut self) -> ModelStreamInferResponse {
        loop {
            if self.received.len() >= 5 {
                let length = (&self.received[1..5]).get_u32() as usize;
                if self.received.len() >= 5 + length {
                    let message = self.received.split_to(5 + length).split_off(5);
                    return ModelStreamInferResponse::decode(message).unwrap();
                }
            }
            let frame = self.body.frame().await.unwrap().unwrap();
            self.received.extend_from_slice(&frame.into_data().unwrap());
        }
    }
}

fn named(app: &str, id: &str) -> Bytes {
    frame(&ModelInferRequest {
        id: id.to_owned(),
        ..one_row(app)
    })
}

#[tokio::test]
async fn answers_come_in_order_and_a_failure_ends_only_its_request() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(STREAM, &[]).await;
    // The first one waits, the others are computed meanwhile.
    messages.send(named("gate", "first")).unwrap();
    messages.send(named("linear", "second")).unwrap();
    messages.send(named("no-such-app", "third")).unwrap();
    messages.send(named("linear", "fourth")).unwrap();
    let body = answer.await.unwrap().into_body();
    let mut reader = Reader {
        body,
        received: BytesMut::new(),
    };
    while server.backend.waiting.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_millis(50)).await;
    server.backend.gate.add_permits(1);
    for id in ["first", "second"] {
        let answer = reader.next().await;
        let response = answer.infer_response.unwrap();
        assert_eq!((&*response.id, &*answer.error_message), (id, ""));
        let last = response.parameters["triton_final_response"]
            .parameter_choice
            .clone();
        assert_eq!(last, Some(ParameterChoice::BoolParam(true)));
    }
    let failed = reader.next().await;
    assert!(failed.infer_response.is_none());
    assert!(
        failed.error_message.contains("no-such-app"),
        "{}",
        failed.error_message
    );
    assert_eq!(reader.next().await.infer_response.unwrap().id, "fourth");
    drop(messages);
    let last = reader.body.frame().await.unwrap().unwrap();
    assert_eq!(last.into_trailers().unwrap()["grpc-status"], "0");
    assert_eq!(*server.backend.refused.lock().unwrap(), [(None, 404)]);
}

/// Messages that share frames, and messages that frames cut.
#[tokio::test]
async fn messages_are_found_wherever_frames_end() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open(STREAM, &[]).await;
    let all: Vec<u8> = (0..5)
        .flat_map(|n| named("linear", &format!("r-{n}")))
        .collect();
    let all = Bytes::from(all);
    let mut at = 0;
    for size in [3, 1, 2, 200, 7, 90].into_iter().cycle() {
        if at == all.len() {
            break;
        }
        let end = (at + size).min(all.len());
        messages.send(all.slice(at..end)).unwrap();
        at = end;
        sleep(Duration::from_millis(2)).await;
    }
    drop(messages);
    let ended = Ended::read(answer.await.unwrap()).await;
    assert_eq!(ended.code, 0);
    let ids = ended.messages.iter().map(|message| {
        let answer = ModelStreamInferResponse::decode(message.clone()).unwrap();
        answer.infer_response.unwrap().id
    });
    assert_eq!(ids.collect::<Vec<_>>(), ["r-0", "r-1", "r-2", "r-3", "r-4"]);
}

/// A client that sends and never reads has a bounded number of inferences inside.
#[tokio::test]
async fn a_stream_that_is_not_read_stops_reading() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::with(&server, |builder| {
        builder.initial_stream_window_size(0);
    })
    .await;
    let (messages, answer) = client.open(STREAM, &[]).await;
    for _ in 0..500 {
        messages.send(named("gate", "")).unwrap();
    }
    server.backend.gate.add_permits(500);
    let _response = answer.await.unwrap();
    let mut before = 0;
    for _ in 0..20 {
        sleep(Duration::from_millis(100)).await;
        let now = server.backend.waiting.load(Ordering::SeqCst);
        if now == before && now > 0 {
            break;
        }
        before = now;
    }
    assert!((1..=40).contains(&before), "{before}");
}
