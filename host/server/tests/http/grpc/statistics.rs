//! Statistics in both protocols.

use serde_json::{Value, json};
use switchyard_protocol::grpc::messages::inference::{
    InferStatistics, ModelStatistics, ModelStatisticsRequest, ModelStatisticsResponse,
    StatisticDuration,
};

use super::client::{Client, SERVICE, rows};
use crate::http::test_bed::{ONE_ROW, TestServer};

fn duration(duration: Option<StatisticDuration>) -> Value {
    duration.map_or(Value::Null, |d| json!({"count": d.count, "ns": d.ns}))
}

fn inference_stats(stats: &InferStatistics) -> Value {
    json!({
        "success": duration(stats.success),
        "fail": duration(stats.fail),
        "queue": duration(stats.queue),
        "compute_input": duration(stats.compute_input),
        "compute_infer": duration(stats.compute_infer),
        "compute_output": duration(stats.compute_output),
        "cache_hit": duration(stats.cache_hit),
        "cache_miss": duration(stats.cache_miss),
    })
}

/// As JSON of HTTP.
fn value(stats: &ModelStatistics) -> Value {
    let batches = stats.batch_stats.iter().map(|batch| {
        json!({
            "batch_size": batch.batch_size,
            "compute_input": duration(batch.compute_input),
            "compute_infer": duration(batch.compute_infer),
            "compute_output": duration(batch.compute_output),
        })
    });
    json!({
        "name": stats.name,
        "version": stats.version,
        "last_inference": stats.last_inference,
        "inference_count": stats.inference_count,
        "execution_count": stats.execution_count,
        "inference_stats": inference_stats(stats.inference_stats.as_ref().unwrap()),
        "batch_stats": batches.collect::<Vec<_>>(),
        "response_stats": {},
        "memory_usage": [],
    })
}

#[tokio::test]
async fn statistics_are_those_of_http_for_every_version() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    server.post("/v2/models/linear/infer", ONE_ROW).await;
    server
        .post("/v2/models/linear/versions/large/infer", ONE_ROW)
        .await;
    client.infer(&rows("linear", &[0.5; 9])).await;
    for (name, version, path) in [
        ("linear", "", "/v2/models/linear/stats"),
        ("linear", "large", "/v2/models/linear/versions/large/stats"),
        ("linear", "1", "/v2/models/linear/versions/1/stats"),
        (
            "linear",
            "latest",
            "/v2/models/linear/versions/latest/stats",
        ),
        ("", "", "/v2/models/stats"),
    ] {
        let request = ModelStatisticsRequest {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let ended = client
            .call(&format!("{SERVICE}ModelStatistics"), &request)
            .await;
        let answer: ModelStatisticsResponse = ended.message();
        let stats: Vec<_> = answer.model_stats.iter().map(value).collect();
        assert_eq!(
            json!({"model_stats": stats}),
            server.get(path).await.json(),
            "{path}"
        );
    }
}

/// perf_analyzer reads a version as a number, and looks its statistics up by that number.
#[tokio::test]
async fn a_counted_version_has_the_sum_of_all_variants() {
    let server = TestServer::with_defaults().await;
    server.post("/v2/models/linear/infer", ONE_ROW).await;
    server
        .post("/v2/models/linear/versions/large/infer", ONE_ROW)
        .await;
    let stats = server
        .get("/v2/models/linear/versions/1/stats")
        .await
        .json();
    let [entry] = &stats["model_stats"].as_array().unwrap()[..] else {
        panic!("{stats}");
    };
    assert_eq!(entry["version"], "1");
    assert_eq!(entry["inference_count"], 2);
    assert_eq!(entry["inference_stats"]["success"]["count"], 2);
}
