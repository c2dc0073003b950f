//! The bound: onnxruntime called in an axum handler, without queue, deadline or policy.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use ort::session::{Session, SessionInputValue};
use ort::value::TensorRef;
use serde::Deserialize;
use tokio::net::TcpListener;

use super::model::Model;
use super::request::JSON_LENGTH;

/// A graph on one thread; the server has one core, so that the lock is always free.
struct Graph(Mutex<Session>);

#[derive(Deserialize)]
struct Asked {
    inputs: Vec<Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    datatype: String,
}

/// Serves the graphs of a folder for ever.
pub(crate) fn serve(port: u16, library: &Path, folder: &Path) {
    let environment = ort::init_from(library).unwrap();
    let environment = environment.with_telemetry(false).build().unwrap();
    let mut router = Router::new();
    for model in Model::ALL {
        let file = folder.join(format!("{}.onnx", model.name()));
        let builder = Session::builder(&environment).unwrap();
        let builder = builder.with_intra_threads(1).unwrap();
        let mut builder = builder.with_inter_threads(1).unwrap();
        let session = builder.commit_from_file(file).unwrap();
        let path = format!("/v2/models/{}/infer", model.name());
        let route = post(infer).with_state(Arc::new(Graph(Mutex::new(session))));
        router = router.route(&path, route);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let router = router.layer(axum::extract::DefaultBodyLimit::max(8 << 20));
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        axum::serve(listener, router).await.unwrap();
    });
}

async fn infer(State(graph): State<Arc<Graph>>, headers: HeaderMap, body: Bytes) -> Response {
    let json_bytes = headers[JSON_LENGTH].to_str().unwrap().parse().unwrap();
    let (json, blob) = body.split_at(json_bytes);
    let asked: Asked = serde_json::from_slice(json).unwrap();
    let answer = graph.run(&asked.inputs[0], blob);
    let mut bytes = br#"{"outputs":[{"name":"y","datatype":"FP32"}]}"#.to_vec();
    let length = bytes.len().to_string();
    bytes.extend(answer.iter().flat_map(|value| value.to_le_bytes()));
    let head = [
        (header::CONTENT_TYPE.as_str(), "application/octet-stream"),
        (JSON_LENGTH, length.as_str()),
    ];
    (head, bytes).into_response()
}

// === impl Graph ===

impl Graph {
    fn run(&self, input: &Tensor, blob: &[u8]) -> Vec<f32> {
        let shape = input.shape.clone();
        let (numbers, ids): (Vec<f32>, Vec<i64>);
        let value: SessionInputValue<'_> = match input.datatype.as_str() {
            "INT64" => {
                let (values, _) = blob.as_chunks::<8>();
                ids = values.iter().map(|&v| i64::from_le_bytes(v)).collect();
                TensorRef::from_array_view((shape, &*ids)).unwrap().into()
            }
            _ => {
                let (values, _) = blob.as_chunks::<4>();
                numbers = values.iter().map(|&v| f32::from_le_bytes(v)).collect();
                TensorRef::from_array_view((shape, &*numbers))
                    .unwrap()
                    .into()
            }
        };
        let mut session = self.0.lock().unwrap();
        let inputs = HashMap::from([(Cow::Borrowed(input.name.as_str()), value)]);
        let outputs = session.run(inputs).unwrap();
        let (_, values) = outputs["y"].try_extract_tensor::<f32>().unwrap();
        values.to_vec()
    }
}
