//! Requests as each server takes them, and the numbers of its answers.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::model::{Input, Model, SAMPLES, SIDE};

/// The header that says where the JSON of a body ends and its bytes begin.
pub(crate) const JSON_LENGTH: &str = "inference-header-content-length";

/// How a server takes tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The Open Inference Protocol with bytes behind the JSON; texts as texts.
    Texts,
    /// The same with the names of the graphs; texts as token ids.
    Graphs,
    /// The protocol with base64 in JSON.
    Mlserver,
    /// JSON of its own with base64.
    Litserve,
    /// JSON of its own for embeddings of texts.
    Embeddings,
}

// === impl Dialect ===

impl Dialect {
    /// The models that can be asked for in it.
    pub(crate) fn models(self) -> &'static [Model] {
        match self {
            Self::Embeddings => &[Model::Minilm],
            _ => &Model::ALL,
        }
    }

    /// A whole HTTP request. A server that knows deadlines may give it up after `timeout`.
    pub(crate) fn request(self, model: Model, input: &Input, timeout: Duration) -> Vec<u8> {
        let parameters = json!({"timeout": timeout.as_micros() as u64});
        let name = model.name();
        let (path, json, blob) = match self {
            Self::Texts if model == Model::Minilm => {
                let text = json!({
                    "name": "text", "shape": [1, 1], "datatype": "BYTES", "data": [input.text()],
                });
                let body = json!({
                    "parameters": parameters, "inputs": [text], "outputs": [binary(output(model))],
                });
                (infer(name), body, Vec::new())
            }
            Self::Texts | Self::Graphs => {
                let blob = input.bytes();
                let output = match self {
                    Self::Texts => output(model),
                    _ => "y",
                };
                let mut tensor = tensor(model, input);
                tensor["parameters"] = json!({"binary_data_size": blob.len()});
                let body = json!({
                    "parameters": parameters, "inputs": [tensor], "outputs": [binary(output)],
                });
                (infer(name), body, blob)
            }
            Self::Mlserver => {
                let mut tensor = tensor(model, input);
                tensor["shape"] = json!([1, 1]);
                tensor["datatype"] = json!("BYTES");
                tensor["data"] = json!([STANDARD.encode(input.bytes())]);
                (infer(name), json!({"inputs": [tensor]}), Vec::new())
            }
            Self::Litserve => {
                let body = json!({"x": STANDARD.encode(input.bytes())});
                (format!("/{name}"), body, Vec::new())
            }
            Self::Embeddings => {
                let body = json!({"inputs": input.text(), "normalize": true});
                ("/embed".to_owned(), body, Vec::new())
            }
        };
        http(&path, &json, &blob)
    }
}

/// Embedding or probabilities of an answer.
///
/// # Errors
/// It has none.
pub(crate) fn numbers(json_bytes: Option<usize>, body: &[u8]) -> Result<Vec<f32>, String> {
    if let Some(blob) = json_bytes.and_then(|bytes| body.get(bytes..)) {
        let (values, _) = blob.as_chunks::<4>();
        return Ok(values.iter().map(|&v| f32::from_le_bytes(v)).collect());
    }
    let text = || String::from_utf8_lossy(body).into_owned();
    let answer: Value = serde_json::from_slice(body).map_err(|_| text())?;
    let data = answer
        .get("y")
        .or_else(|| answer.pointer("/outputs/0/data"))
        .or_else(|| answer.get(0));
    let data = data.ok_or_else(text)?;
    serde_json::from_value(data.clone()).map_err(|_| text())
}

fn infer(model: &str) -> String {
    format!("/v2/models/{model}/infer")
}

/// The name of this server's own output.
fn output(model: Model) -> &'static str {
    match model {
        Model::Minilm => "embedding",
        Model::Resnet50 | Model::Mlp => "probabilities",
    }
}

fn binary(name: &str) -> Value {
    json!({"name": name, "parameters": {"binary_data": true}})
}

fn tensor(model: Model, input: &Input) -> Value {
    match (model, input) {
        (Model::Resnet50, _) => {
            json!({"name": "x", "shape": [1, 3, SIDE, SIDE], "datatype": "FP32"})
        }
        (_, Input::Ids(ids)) => {
            json!({"name": "ids", "shape": [1, ids.len()], "datatype": "INT64"})
        }
        _ => json!({"name": "x", "shape": [1, SAMPLES], "datatype": "FP32"}),
    }
}

fn http(path: &str, json: &Value, blob: &[u8]) -> Vec<u8> {
    let json = json.to_string().into_bytes();
    let kind = match blob.is_empty() {
        true => "Content-Type: application/json".to_owned(),
        false => format!(
            "Content-Type: application/octet-stream\r\n{JSON_LENGTH}: {}",
            json.len()
        ),
    };
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}\r\nContent-Length: {}\r\n\r\n",
        json.len() + blob.len()
    );
    [head.as_bytes(), &json, blob].concat()
}
