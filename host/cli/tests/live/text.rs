//! Texts over HTTP, from JSON or binary BYTES tensors to classes and embeddings.

use serde_json::{Value, json};
use switchyard_profile::{Machine, ProfileFile};
use tempfile::TempDir;

use super::client::get;
use super::zoo_server::ZooServer;
use crate::text_zoo::{Answers, HIDDEN, write_app};

const APPS: [&str; 2] = ["mood", "sense"];

/// A server of two applications of texts.
async fn start() -> ZooServer {
    let zoo = TempDir::new().unwrap();
    write_app(zoo.path(), "mood", Answers::Classes, &["one", "two"]);
    write_app(zoo.path(), "sense", Answers::Embeddings, &["one"]);
    ZooServer::start(zoo, &APPS).await
}

fn body(texts: &[&str]) -> String {
    json!({"inputs": [{
        "name": "text", "shape": [texts.len(), 1], "datatype": "BYTES", "data": texts,
    }]})
    .to_string()
}

/// The output of that name and its shape.
fn output(answer: &Value, name: &str) -> (Vec<u64>, Vec<f64>) {
    let outputs = answer["outputs"].as_array().unwrap();
    let output = outputs
        .iter()
        .find(|output| output["name"] == name)
        .unwrap();
    let shape = output["shape"].as_array().unwrap().iter();
    let data = output["data"].as_array().unwrap().iter();
    (
        shape.map(|dim| dim.as_u64().unwrap()).collect(),
        data.map(|value| value.as_f64().unwrap()).collect(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_are_classified_and_embedded() {
    let texts = start().await;
    let mut client = texts.client().await;
    let sent = body(&["w4 w5 w6", "Gr\u{fc}ezi", ""]);
    let answer = client
        .send("POST", "/v2/models/mood/infer", sent.clone())
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let (shape, shares) = output(&answer.json(), "probabilities");
    assert_eq!(shape, [3, 3]);
    for row in shares.chunks(3) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{row:?}");
    }
    assert_eq!(output(&answer.json(), "label").0, [3, 1]);

    let answer = client
        .send("POST", "/v2/models/sense/infer", sent)
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let (shape, vectors) = output(&answer.json(), "embedding");
    assert_eq!(shape, [3, HIDDEN as u64]);
    for row in vectors.chunks(HIDDEN) {
        let length: f64 = row.iter().map(|v| v * v).sum();
        assert!((length - 1.0).abs() < 1e-5, "{row:?}");
    }

    let metadata = client
        .send("GET", "/v2/models/sense", String::new())
        .await
        .unwrap()
        .json();
    assert_eq!(
        metadata["inputs"],
        json!([{"name": "text", "datatype": "BYTES", "shape": [-1, 1]}])
    );
    texts.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_without_text_are_refused() {
    let texts = start().await;
    let mut client = texts.client().await;
    for (sent, named) in [
        (body(&[]), "shape"),
        (body(&["a"]).replace("[1,1]", "[1,2]"), "shape"),
        (body(&["a"]).replace("\"a\"", "1"), "inputs[0].data"),
        (body(&["a"]).replace("BYTES", "FP32"), "inputs[0].datatype"),
        (body(&[&"a".repeat(100_000)]), "the limit is 65536"),
    ] {
        let answer = client
            .send("POST", "/v2/models/mood/infer", sent)
            .await
            .unwrap();
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.error().contains(named), "{named}: {answer:?}");
    }
    let answer = client
        .send("POST", "/v2/models/mood/infer", body(&["w4"]))
        .await
        .unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    texts.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_tokenizer_fails_its_variant_and_not_the_server() {
    // Measured once, so that the next start need not load anything.
    let zoo = start().await.stop().await;
    let file = zoo.path().join("mood/two/tokenizer.json");
    std::fs::remove_file(&file).unwrap();
    let texts = ZooServer::start(zoo, &APPS).await;
    let mut client = texts.client().await;
    for (variant, status) in [("two", 500), ("one", 200), ("two", 500)] {
        let path = format!("/v2/models/mood/versions/{variant}/infer");
        let answer = client.send("POST", &path, body(&["w4"])).await.unwrap();
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 500 {
            let error = answer.error();
            assert!(error.contains("tokenizer.json"), "{error}");
            let folder = file.parent().unwrap().to_string_lossy();
            assert!(!error.contains(&*folder), "no path of the machine: {error}");
        }
    }
    texts.stop().await;
}

/// The profile says that the longest text takes a hundred times as long as others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_scheduled_by_its_tokens() {
    let zoo = start().await.stop().await;
    let file = zoo.path().join(Machine::detect().file_name());
    let mut profile = ProfileFile::load(&file).unwrap();
    for cell in &mut profile.lengths {
        cell.is_typical = cell.length == 8;
        cell.p50_us = if cell.is_typical { 100 } else { 10_000 };
    }
    profile.save(&file).unwrap();
    let texts = ZooServer::start(zoo, &APPS).await;
    let mut client = texts.client().await;
    let long = "w4 ".repeat(100);
    let answer = client
        .send(
            "POST",
            "/v2/models/mood/infer",
            body(&["w4 w5 w6 w7 w8 w9", &long]),
        )
        .await
        .unwrap();
    let window = answer.json()["parameters"]["window"].as_u64().unwrap();
    let path = format!("/admin/v1/windows/{window}");
    let decision = get(texts.admin, &path).await.json();
    let shown = decision["requests"].as_array().unwrap();
    let cost = |at: usize| shown[at]["cost"].as_f64();
    assert_eq!(cost(0), None, "as common: {decision}");
    assert!(cost(1).is_some_and(|cost| cost > 4.0), "{decision}");
    texts.stop().await;
}
