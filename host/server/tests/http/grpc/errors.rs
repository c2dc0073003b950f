//! Failures: a code, and the text of HTTP.

use bytes::Bytes;
use hyper::Request;
use serde_json::json;
use switchyard_protocol::grpc::messages::inference::infer_parameter::ParameterChoice;
use switchyard_protocol::grpc::messages::inference::{InferParameter, ModelInferRequest};

use super::client::{Client, SERVICE, one_row};
use crate::http::test_bed::{FAILING, LINEAR, TestServer};

const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";

/// Every failure of the backend.
#[tokio::test]
async fn failures_of_the_backend_have_the_text_of_http() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    for (priority, code) in [(1, 8), (2, 14), (3, 8), (4, 4), (5, 13), (6, 8), (7, 4)] {
        let request = ModelInferRequest {
            parameters: [(
                "priority".to_owned(),
                InferParameter {
                    parameter_choice: Some(ParameterChoice::Uint64Param(priority)),
                },
            )]
            .into(),
            ..one_row("failing")
        };
        let ended = client.call(INFER, &request).await;
        let body = json!({
            "parameters": {"priority": priority},
            "inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}],
        });
        let over_http = server
            .post("/v2/models/failing/infer", body.to_string())
            .await;
        let text = over_http.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(ended.failure(), (code, &*text));
        let pushback = ended.trailers.get("grpc-retry-pushback-ms");
        let seconds = over_http.header("retry-after");
        assert_eq!(
            pushback.map(|value| value.to_str().unwrap().to_owned()),
            seconds.map(|seconds| format!("{seconds}000"))
        );
    }
    assert!(
        server.backend.refused.lock().unwrap().is_empty(),
        "the backend counts these"
    );
}

#[tokio::test]
async fn wrong_requests_are_refused_by_field_and_counted_as_those_of_http() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let wrong_shape = || {
        let mut request = one_row("linear");
        request.inputs[0].shape = vec![1, 4];
        request
    };
    let ended = client.call(INFER, &wrong_shape()).await;
    assert_eq!(
        ended.failure(),
        (
            3,
            "inputs[0].shape: expected [rows, 3], got [1, 4]; the first dimension is the batch"
        )
    );
    let ended = client.call(INFER, &one_row("no-such-app")).await;
    let expected = "path: unknown app \"no-such-app\"; apps of this server: linear, echo/every \
                    type, gate, failing";
    assert_eq!(ended.failure(), (5, expected));
    let body = Bytes::from_static(&[0, 0, 0, 0, 2, 0xff, 0xff]);
    let ended = client.call_with(INFER, &[], body).await;
    assert_eq!(ended.failure(), (3, "body: is no protobuf message"));
    let ended = client
        .call_with(INFER, &[], Bytes::from_static(&[9, 0, 0, 0, 0]))
        .await;
    assert_eq!(ended.code, 3);
    let ended = client
        .call_with(INFER, &[], Bytes::from_static(&[0, 0, 0, 0, 9, 1]))
        .await;
    assert_eq!(
        ended.failure(),
        (
            3,
            "body: broke off after 6 bytes: the client ended the call"
        )
    );
    let ended = client.call_with(INFER, &[], Bytes::new()).await;
    assert_eq!(ended.failure(), (3, "body: has no message"));
    let headers = [("grpc-timeout", "soon")];
    let body = super::client::frame(&one_row("linear"));
    let ended = client.call_with(INFER, &headers, body).await;
    assert!(
        ended.text.starts_with("grpc-timeout: expected"),
        "{}",
        ended.text
    );
    let refused = server.backend.refused.lock().unwrap().clone();
    let (linear, none) = (Some(LINEAR), None);
    assert_eq!(
        refused,
        [
            (linear, 400),
            (none, 404),
            (none, 400),
            (none, 400),
            (none, 400),
            (none, 400),
            (none, 400),
        ]
    );
    assert_ne!(FAILING, LINEAR);
}

#[tokio::test]
async fn calls_that_the_port_does_not_have_are_named() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    for call in [
        "SystemSharedMemoryStatus",
        "TraceSetting",
        "LogSettings",
        "Nothing",
    ] {
        let ended = client
            .call_with(&format!("{SERVICE}{call}"), &[], Bytes::new())
            .await;
        assert_eq!(ended.code, 12);
        assert!(ended.text.contains(call), "{}", ended.text);
    }
}

#[tokio::test]
async fn requests_that_are_no_grpc_get_a_status_of_http() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    for (method, content_type, status) in [
        ("GET", "application/grpc", 405),
        ("POST", "application/json", 415),
        ("GET", "text/html", 415),
    ] {
        let (_, body) = tokio::sync::mpsc::unbounded_channel();
        let request = Request::builder()
            .method(method)
            .uri("http://test/v2/health/live")
            .header("content-type", content_type)
            .body(super::client::Messages::of(body))
            .unwrap();
        client.sender.ready().await.unwrap();
        let answer = client.sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), status);
    }
}
