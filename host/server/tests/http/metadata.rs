use std::sync::atomic::Ordering;

use super::test_bed::{ONE_ROW, TestServer};
use serde_json::json;

#[tokio::test]
async fn health_has_the_fields_that_both_clients_read() {
    let server = TestServer::with_defaults().await;
    let live = server.get("/v2/health/live").await;
    assert_eq!(
        (live.status.as_u16(), live.json()),
        (200, json!({"live": true}))
    );
    let ready = server.get("/v2/health/ready").await;
    assert_eq!(ready.json(), json!({"live": true, "ready": true}));
    let app = server.get("/v2/models/linear/ready").await;
    assert_eq!(app.json(), json!({"name": "linear", "ready": true}));
}

#[tokio::test]
async fn the_answer_of_an_app_that_is_not_ready_has_the_reason() {
    let server = TestServer::with_defaults().await;
    server.backend.ready.store(false, Ordering::Relaxed);
    for path in ["/v2/health/ready", "/v2/models/linear/ready"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.error(), "not ready: app \"linear\" is loading");
    }
    assert_eq!(server.get("/v2/health/live").await.status, 200);
    let variant = server.get("/v2/models/failing/versions/large/ready").await;
    assert_eq!(
        variant.error(),
        "not ready: variant \"large\" does not fit any worker"
    );
}

#[tokio::test]
async fn a_head_request_is_a_get_without_its_body() {
    let server = TestServer::with_defaults().await;
    let get = server.get("/v2/models/linear").await;
    let head = server.method("HEAD", "/v2/models/linear").await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), get.header("content-type"));
    assert!(head.body.is_empty());
}

#[tokio::test]
async fn names_may_be_quoted_and_the_query_is_ignored() {
    let server = TestServer::with_defaults().await;
    for path in [
        "/v2/models/echo/every%20type",
        "/v2/models/echo%2Fevery%20type?x=1",
        "/v2/models/echo/every%20type/versions/small",
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.json()["name"], "echo/every type");
    }
}

/// Bodies that clients read: a change shows in the snapshots.
#[tokio::test]
async fn bodies() {
    let server = TestServer::with_defaults().await;
    // For the statistics.
    server.post("/v2/models/linear/infer", ONE_ROW).await;
    for (name, method, path) in [
        ("server", "GET", "/v2"),
        ("app", "GET", "/v2/models/linear"),
        ("variant", "GET", "/v2/models/linear/versions/large"),
        ("config", "GET", "/v2/models/linear/config"),
        ("stats", "GET", "/v2/models/linear/stats"),
        (
            "stats_of_variant",
            "GET",
            "/v2/models/linear/versions/large/stats",
        ),
        ("repository_index", "POST", "/v2/repository/index"),
    ] {
        let answer = server.method(method, path).await;
        assert_eq!(answer.status, 200, "{path}");
        let body = serde_json::to_string_pretty(&answer.json()).unwrap();
        let body = body.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(name, body);
    }
}

#[tokio::test]
async fn all_statistics_have_every_variant_of_every_app() {
    let server = TestServer::with_defaults().await;
    let all = server.get("/v2/models/stats").await.json();
    assert_eq!(all["model_stats"].as_array().unwrap().len(), 8);
}

#[tokio::test]
async fn the_repository_index_can_list_only_ready_variants() {
    let server = TestServer::with_defaults().await;
    let path = "/v2/repository/index";
    let all = server.post(path, r#"{"ready":false}"#).await.json();
    let ready = server.post(path, r#"{"ready":true}"#).await.json();
    assert_eq!(all.as_array().unwrap().len(), 8);
    assert_eq!(ready.as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn a_server_whose_scheduler_has_failed_is_not_alive() {
    let server = TestServer::with_defaults().await;
    server.backend.alive.store(false, Ordering::Relaxed);
    let live = server.get("/v2/health/live").await;
    assert_eq!(live.status, 503);
    let error = live.error();
    assert!(error.contains("its scheduler has failed"), "{error}");
}
