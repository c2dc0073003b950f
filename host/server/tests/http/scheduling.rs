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
