use serde_json::json;
use switchyard_server::ingress::VariantIndex;

use super::test_bed::{LINEAR, ONE_ROW, TestServer};

#[tokio::test]
async fn parameters_reach_the_backend() {
    let server = TestServer::with_defaults().await;
    let parameters = json!({"timeout": 2500, "priority": 1, "min_accuracy": 0.75});
    let body = ONE_ROW.replacen('{', &format!(r#"{{"parameters":{parameters},"#), 1);
    server.post("/v2/models/linear/infer", body).await;
    let call = server.backend.last_call.lock().unwrap().clone().unwrap();
    assert_eq!(call.app, LINEAR);
    assert_eq!(call.variant, None);
    assert_eq!(call.timeout_us, Some(2500));
    assert_eq!(call.priority, 1);
    assert_eq!(call.min_accuracy, Some(0.75));
}

#[tokio::test]
async fn the_clients_span_reaches_the_backend() {
    let server = TestServer::with_defaults().await;
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (header, sampled) in [(header, Some(true)), ("wrong", None)] {
        let headers = [("traceparent", header)];
        let path = "/v2/models/linear/infer";
        assert_eq!(server.post_with(path, &headers, ONE_ROW).await.status, 200);
        let call = server.backend.last_call.lock().unwrap().clone().unwrap();
        assert_eq!(call.parent.map(|parent| parent.sampled), sampled);
    }
}

#[tokio::test]
async fn a_version_pins_the_variant() {
    let server = TestServer::with_defaults().await;
    let answer = server
        .post("/v2/models/linear/versions/large/infer", ONE_ROW)
        .await;
    assert_eq!(answer.json()["model_version"], "large");
    let call = server.backend.last_call.lock().unwrap().clone().unwrap();
    assert_eq!(call.variant, Some(VariantIndex(1)));
}

#[tokio::test]
async fn clients_that_count_versions_leave_the_choice_to_the_policy() {
    let server = TestServer::with_defaults().await;
    for version in ["1", "latest"] {
        let path = format!("/v2/models/linear/versions/{version}/infer");
        assert_eq!(server.post(&path, ONE_ROW).await.status, 200);
        let call = server.backend.last_call.lock().unwrap().clone().unwrap();
        assert_eq!(call.variant, None);
        let path = format!("/v2/models/linear/versions/{version}/ready");
        assert_eq!(server.get(&path).await.status, 200);
    }
    let unknown = server.get("/v2/models/linear/versions/2/ready").await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test]
async fn the_best_classes_come_in_place_of_the_values() {
    let server = TestServer::with_defaults().await;
    let outputs = r#"{"outputs":[{"name":"y","parameters":{"classification":2}}],"#;
    let body = ONE_ROW.replacen('{', outputs, 1);
    let answer = server.post("/v2/models/linear/infer", body).await.json();
    let output = &answer["outputs"][0];
    assert_eq!(output["datatype"], "BYTES");
    assert_eq!(output["shape"], serde_json::json!([1, 2]));
    let plain = server.post("/v2/models/linear/infer", ONE_ROW).await.json();
    let values = plain["outputs"][0]["data"].as_array().unwrap();
    let largest = values.iter().filter_map(serde_json::Value::as_f64);
    let largest = largest.fold(f64::MIN, f64::max);
    let at = values
        .iter()
        .position(|value| value.as_f64() == Some(largest));
    let wanted = format!("{largest:.6}:{}", at.unwrap());
    assert_eq!(output["data"][0], wanted);
}

#[tokio::test]
async fn a_timeout_of_zero_means_the_apps_default() {
    let server = TestServer::with_defaults().await;
    let body = ONE_ROW.replacen('{', r#"{"parameters":{"timeout":"0"},"#, 1);
    assert_eq!(
        server.post("/v2/models/linear/infer", body).await.status,
        200
    );
    let call = server.backend.last_call.lock().unwrap().clone().unwrap();
    assert_eq!(call.timeout_us, None);
}
