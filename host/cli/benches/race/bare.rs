//! The two bounds: hyper with a canned answer, axum with the model inline.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use candle_core::{Device, Tensor};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use switchyard_models::StagedModel;
use tokio::net::TcpListener;

use super::model::{APP, SAMPLES, variant};

const JSON_LENGTH: &str = "inference-header-content-length";

/// Serves for ever.
pub(crate) fn serve(what: &str, port: u16, zoo: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        match what {
            "hyper" => canned(listener).await,
            _ => inline(listener, zoo).await,
        }
    });
}

/// Reads the body and answers with the bytes of a real answer.
async fn canned(listener: TcpListener) {
    const ANSWER: &str = r#"{"model_name":"mlp","model_version":"only","outputs":[{"name":"probabilities","shape":[1,7],"datatype":"FP32","data":[0.14,0.14,0.14,0.14,0.14,0.15,0.15]}]}"#;
    async fn answer(
        request: hyper::Request<Incoming>,
    ) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
        // An error here is the client's end.
        let _ = request.into_body().collect().await;
        Ok(hyper::Response::new(Full::new(Bytes::from_static(
            ANSWER.as_bytes(),
        ))))
    }
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        tokio::spawn(
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)),
        );
    }
}

#[derive(Deserialize)]
struct Asked {
    inputs: Vec<Input>,
}

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    data: Vec<f32>,
}

#[derive(Serialize)]
struct Answer<'a> {
    model_name: &'a str,
    outputs: [Output<'a>; 1],
}

#[derive(Serialize)]
struct Output<'a> {
    name: &'a str,
    shape: [usize; 2],
    datatype: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Size>,
}

#[derive(Serialize)]
struct Size {
    binary_data_size: usize,
}

/// A handwritten server: parse, run the model on this thread, answer.
async fn inline(listener: TcpListener, zoo: &Path) {
    let loaded = switchyard_models::load_variant(&variant(zoo), &Device::Cpu).unwrap();
    let app = Router::new()
        .route(&format!("/v2/models/{APP}/infer"), post(infer))
        .with_state(loaded.model);
    axum::serve(listener, app).await.unwrap();
}

async fn infer(
    State(model): State<Arc<dyn StagedModel>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let json_bytes = headers
        .get(JSON_LENGTH)
        .map(|value| value.to_str().unwrap().parse::<usize>().unwrap());
    let (json, blob) = body.split_at(json_bytes.unwrap_or(body.len()));
    let mut asked: Asked = serde_json::from_slice(json).unwrap();
    let data = if blob.is_empty() {
        std::mem::take(&mut asked.inputs[0].data)
    } else {
        let (values, _) = blob.as_chunks::<4>();
        values
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes))
            .collect()
    };
    let x = Tensor::from_vec(data, (1, SAMPLES), &Device::Cpu).unwrap();
    let probabilities = model.forward(0, &x).unwrap();
    let probabilities = probabilities
        .flatten_all()
        .unwrap()
        .to_vec1::<f32>()
        .unwrap();
    let binary = json_bytes.is_some();
    let answer = Answer {
        model_name: APP,
        outputs: [Output {
            name: "probabilities",
            shape: [1, probabilities.len()],
            datatype: "FP32",
            data: (!binary).then_some(&probabilities),
            parameters: binary.then_some(Size {
                binary_data_size: 4 * probabilities.len(),
            }),
        }],
    };
    let mut bytes = serde_json::to_vec(&answer).unwrap();
    if !binary {
        return ([(header::CONTENT_TYPE, "application/json")], bytes).into_response();
    }
    let length = bytes.len().to_string();
    bytes.extend(probabilities.iter().flat_map(|value| value.to_le_bytes()));
    let head = [
        (header::CONTENT_TYPE.as_str(), "application/octet-stream"),
        (JSON_LENGTH, length.as_str()),
    ];
    (head, bytes).into_response()
}
