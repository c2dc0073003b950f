//! Graphs of several named tensors over HTTP: any types, open dimensions, several outputs.

use std::path::Path;

use serde_json::{Value, json};
use switchyard_profile::{Machine, ProfileFile};
use tempfile::TempDir;

use super::client::get;
use super::zoo_server::ZooServer;
use crate::onnx::{FLOAT, Graph, INT64, Node, OPEN, Value as Port};
use crate::onnx_zoo::CARD;

/// `sum = x + y` and `same = k`.
const TENSORS: &str = r#"
name = "tensors"
summary = "Sums"
task = "tensors"
slo_ms = 10000.0
penalty = "step"
[[inputs]]
name = "x"
datatype = "FP32"
shape = [-1]
typical = [4]
[[inputs]]
name = "y"
datatype = "FP32"
shape = [1]
[[inputs]]
name = "k"
datatype = "INT64"
shape = [2]
[[outputs]]
name = "sum"
datatype = "FP32"
shape = [-1]
[[outputs]]
name = "same"
datatype = "INT64"
shape = [2]
"#;

/// Scores of two classes from two inputs.
const PAIRS: &str = r#"
name = "pairs"
summary = "Pairs"
classes = ["first", "second"]
slo_ms = 10000.0
penalty = "step"
[[inputs]]
name = "x"
datatype = "FP32"
shape = [2]
[[inputs]]
name = "y"
datatype = "FP32"
shape = [2]
[[outputs]]
name = "probabilities"
datatype = "FP32"
shape = [2]
[[outputs]]
name = "label"
datatype = "INT64"
shape = [1]
"#;

pub(crate) fn write_app(zoo: &Path, name: &str, card: &str, task: &str, graph: Graph) {
    let variant = zoo.join(name).join("graph");
    std::fs::create_dir_all(&variant).unwrap();
    std::fs::write(zoo.join(name).join("app.toml"), card).unwrap();
    let architecture = format!("kind = \"onnx\"\n{task}");
    let card = CARD.replace("kind = \"onnx\"", &architecture);
    std::fs::write(variant.join("model.toml"), card).unwrap();
    std::fs::write(variant.join("model.onnx"), graph.bytes()).unwrap();
}

pub(crate) fn write_zoo(zoo: &Path) {
    let tensors = Graph {
        nodes: vec![
            Node::new("Add", &["x", "y"], "sum"),
            Node::new("Identity", &["k"], "same"),
        ],
        inputs: vec![
            Port::new("k", INT64, Some(&[OPEN, 2])),
            Port::new("x", FLOAT, Some(&[OPEN, OPEN])),
            Port::new("y", FLOAT, Some(&[OPEN, 1])),
        ],
        outputs: vec![
            Port::new("same", INT64, Some(&[OPEN, 2])),
            Port::new("sum", FLOAT, Some(&[OPEN, OPEN])),
        ],
        ..Graph::default()
    };
    write_app(zoo, "tensors", TENSORS, "task = \"tensors\"", tensors);
    let pairs = Graph {
        nodes: vec![Node::new("Add", &["x", "y"], "logits")],
        inputs: vec![
            Port::new("x", FLOAT, Some(&[OPEN, 2])),
            Port::new("y", FLOAT, Some(&[OPEN, 2])),
        ],
        outputs: vec![Port::new("logits", FLOAT, Some(&[OPEN, 2]))],
        ..Graph::default()
    };
    write_app(zoo, "pairs", PAIRS, "", pairs);
}

/// A server of both applications.
async fn start() -> ZooServer {
    let zoo = TempDir::new().unwrap();
    write_zoo(zoo.path());
    ZooServer::start(zoo, &["tensors", "pairs"]).await
}

async fn infer(server: &ZooServer, app: &str, inputs: Value) -> (u16, Value) {
    let mut client = server.client().await;
    let body = json!({ "inputs": inputs }).to_string();
    let path = format!("/v2/models/{app}/infer");
    let answer = client.send("POST", &path, body).await.unwrap();
    (answer.status, answer.json())
}

fn input(name: &str, datatype: &str, shape: &[usize], data: Value) -> Value {
    json!({ "name": name, "datatype": datatype, "shape": shape, "data": data })
}

/// `x` of `rows` rows of `width` numbers, one `y` and two `k` per row.
fn sums(rows: usize, width: usize) -> Value {
    let x: Vec<usize> = (0..rows * width).collect();
    let y: Vec<usize> = (0..rows).map(|row| 100 * row).collect();
    let k: Vec<i64> = (0..2 * rows as i64).map(|k| k - 3).collect();
    json!([
        input("x", "FP32", &[rows, width], json!(x)),
        input("k", "INT64", &[rows, 2], json!(k)),
        input("y", "FP32", &[rows, 1], json!(y)),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tensors_of_any_shape_go_in_and_come_out() {
    let graphs = start().await;
    for (rows, width) in [(1, 3), (2, 5), (8, 1)] {
        let (status, answer) = infer(&graphs, "tensors", sums(rows, width)).await;
        assert_eq!(status, 200, "{answer}");
        let outputs = answer["outputs"].as_array().unwrap();
        assert_eq!(outputs[0]["name"], "sum");
        assert_eq!(outputs[0]["shape"], json!([rows, width]));
        let sum = (0..rows * width).map(|i| i as f64 + 100.0 * (i / width) as f64);
        assert_eq!(outputs[0]["data"], json!(sum.collect::<Vec<f64>>()));
        assert_eq!(outputs[1]["name"], "same");
        assert_eq!(outputs[1]["datatype"], "INT64");
        let same: Vec<i64> = (0..2 * rows as i64).map(|k| k - 3).collect();
        assert_eq!(outputs[1]["data"], json!(same));
    }
    // At the same time, in other shapes: each gets its own answer.
    let mixed = [(1, 3), (1, 4), (2, 3), (1, 4), (3, 2), (1, 1)];
    let calls = mixed.map(|(rows, width)| infer(&graphs, "tensors", sums(rows, width)));
    for ((rows, width), (status, answer)) in mixed.into_iter().zip(join(calls).await) {
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["outputs"][0]["shape"], json!([rows, width]));
        let first = answer["outputs"][0]["data"].as_array().unwrap();
        assert_eq!(first.len(), rows * width);
        assert_eq!(first[width - 1], json!(width as f64 - 1.0));
    }
    let mut wrong = sums(1, 3);
    wrong[1] = input("k", "INT64", &[1, 3], json!([1, 2, 3]));
    let (status, answer) = infer(&graphs, "tensors", wrong).await;
    let error = answer["error"].as_str().unwrap().to_owned();
    assert_eq!(status, 400, "{error}");
    assert!(error.contains("expected [rows, 2], got [1, 3]"), "{error}");
    graphs.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_classifier_may_take_several_inputs() {
    let graphs = start().await;
    let inputs = json!([
        input("y", "FP32", &[2, 2], json!([0.0, 0.0, 5.0, 0.0])),
        input("x", "FP32", &[2, 2], json!([1.0, 3.0, 0.0, 2.0])),
    ]);
    let (status, answer) = infer(&graphs, "pairs", inputs).await;
    assert_eq!(status, 200, "{answer}");
    let probabilities = answer["outputs"][0]["data"].as_array().unwrap();
    let wanted = [2.0_f64, -3.0].map(|difference| 1.0 / (1.0 + difference.exp()));
    for (row, wanted) in wanted.into_iter().enumerate() {
        let found = probabilities[2 * row].as_f64().unwrap();
        assert!((found - wanted).abs() < 1e-6, "{found} for {wanted}");
    }
    assert_eq!(answer["outputs"][1]["data"], json!([1, 0]));
    graphs.stop().await;
}

/// All of them at the same time.
async fn join<T>(calls: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (call, done) in calls.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(end) = call.as_mut().poll(context)
            {
                *done = Some(end);
            }
        }
        match done.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// `values` are the pixels: 2 by 2, red, green and blue from -1 to 1.
const PHOTO: &str = r#"
name = "photo"
summary = "Pixels"
task = "tensors"
slo_ms = 10000.0
penalty = "step"
[[inputs]]
name = "x"
datatype = "FP32"
shape = [3, 2, 2]
[inputs.image]
size = [2, 2]
fit = "stretch"
mean = [0.5]
deviation = [0.5]
max_pixels = 1000
[[outputs]]
name = "values"
datatype = "FP32"
shape = [3, 2, 2]
"#;

/// A PNG of one white pixel.
const WHITE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSu\
    QmCC";

/// A JPEG of 8 by 8 pixels, level 128.
const GREY: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKra\
    rYqMyP/L2u71////m8H////6/+b9//j/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAA\
    AAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AP//Z";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_are_decoded_and_refused_by_row() {
    let zoo = TempDir::new().unwrap();
    let shape = Some(&[OPEN, 3, 2, 2][..]);
    let graph = Graph {
        nodes: vec![Node::new("Identity", &["x"], "values")],
        inputs: vec![Port::new("x", FLOAT, shape)],
        outputs: vec![Port::new("values", FLOAT, shape)],
        ..Graph::default()
    };
    write_app(zoo.path(), "photo", PHOTO, "task = \"tensors\"", graph);
    let server = ZooServer::start(zoo, &["photo"]).await;
    let mut client = server.client().await;
    let metadata = client
        .send("GET", "/v2/models/photo", String::new())
        .await
        .unwrap()
        .json();
    assert_eq!(
        metadata["inputs"],
        json!([{ "name": "x", "datatype": "BYTES", "shape": [-1, 1] }])
    );

    let in_json = |images: &[&str]| {
        let rows = images.len();
        json!([input("x", "BYTES", &[rows, 1], json!(images))])
    };
    let (status, answer) = infer(&server, "photo", in_json(&[WHITE, WHITE])).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["outputs"][0]["shape"], json!([2, 3, 2, 2]));
    assert_eq!(answer["outputs"][0]["data"], json!(vec![1.0; 24]));

    let (status, answer) = infer(&server, "photo", in_json(&[GREY])).await;
    assert_eq!(status, 200, "{answer}");
    let level = answer["outputs"][0]["data"][0].as_f64().unwrap();
    assert!((level - (128.0 / 127.5 - 1.0)).abs() < 1e-6, "{level}");

    let (status, answer) = infer(&server, "photo", in_json(&[WHITE, "R0lGODlh"])).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(
        answer["error"],
        "inputs: \"x\", row 1: not a JPEG, PNG or WebP image (first bytes 47 49 46 38 39 61): encode \
         the image as one of the three"
    );
    let (status, answer) = infer(&server, "photo", in_json(&[&GREY[..120]])).await;
    assert_eq!(status, 400, "{answer}");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("JPEG image ends early"), "{error}");
    let numbers = json!([input("x", "FP32", &[1, 3, 2, 2], json!(vec![0.0; 12]))]);
    let (status, answer) = infer(&server, "photo", numbers).await;
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("inputs[0].datatype: expected BYTES, got FP32"))
    );
}

/// A profile measures a graph at several sizes, and a large request counts as the rows whose time it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_costs_what_its_open_dimensions_take() {
    let zoo = start().await.stop().await;
    let file = zoo.path().join(Machine::detect().file_name());
    let mut profile = ProfileFile::load(&file).unwrap();
    let measured = profile.lengths.iter();
    let measured: Vec<_> = measured
        .map(|cell| (cell.length, cell.is_typical))
        .collect();
    let sizes = [1, 2, 4, 8, 16, 32].map(|values| (values, values == 4));
    assert_eq!(measured, sizes, "of `x`, typically 4 and at most 32");
    for cell in &mut profile.lengths {
        cell.p50_us = if cell.is_typical { 100 } else { 10_000 };
    }
    profile.save(&file).unwrap();
    let server = ZooServer::start(zoo, &["tensors", "pairs"]).await;
    for (width, is_dear) in [(4, false), (32, true)] {
        let (status, answer) = infer(&server, "tensors", sums(1, width)).await;
        assert_eq!(status, 200, "{answer}");
        let window = answer["parameters"]["window"].as_u64().unwrap();
        let path = format!("/admin/v1/windows/{window}");
        let decision = get(server.admin, &path).await.json();
        let cost = decision["requests"][0]["cost"].as_f64();
        assert_eq!(cost.is_some_and(|cost| cost > 4.0), is_dear, "{decision}");
    }
    server.stop().await;
}
