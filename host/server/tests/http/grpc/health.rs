//! gRPC's health checks.

use std::sync::atomic::Ordering;

use http_body_util::BodyExt;
use prost::Message as _;
use switchyard_protocol::grpc::messages::health::health_check_response::ServingStatus;
use switchyard_protocol::grpc::messages::health::{HealthCheckRequest, HealthCheckResponse};

use super::client::{Client, frame};
use crate::http::test_bed::TestServer;

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

#[tokio::test]
async fn a_check_is_about_the_server_or_an_app() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    for (ready, status) in [
        (true, ServingStatus::Serving),
        (false, ServingStatus::NotServing),
    ] {
        server.backend.ready.store(ready, Ordering::Relaxed);
        for service in ["", "inference.GRPCInferenceService", "linear"] {
            let ended = client
                .call("/grpc.health.v1.Health/Check", &about(service))
                .await;
            let answer: HealthCheckResponse = ended.message();
            assert_eq!(answer.status(), status, "{service}");
        }
    }
    let ended = client
        .call("/grpc.health.v1.Health/Check", &about("no-such-app"))
        .await;
    assert_eq!(ended.code, 5);
}

#[tokio::test]
async fn a_watch_reports_each_change() {
    let mut server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let (messages, answer) = client.open("/grpc.health.v1.Health/Watch", &[]).await;
    messages.send(frame(&about(""))).unwrap();
    let mut body = answer.await.unwrap().into_body();
    for ready in [true, false, true] {
        server.backend.ready.store(ready, Ordering::Relaxed);
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let answer = HealthCheckResponse::decode(&bytes[5..]).unwrap();
        let expected = match ready {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        assert_eq!(answer.status(), expected);
    }
    server.shut_down();
    let last = body.frame().await.unwrap().unwrap();
    assert_eq!(last.into_trailers().unwrap()["grpc-status"], "14");
    server.drained().await;
}
