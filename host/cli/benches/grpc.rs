//! gRPC against HTTP with binary tensors: one server, one client program, one run.
//!
//! ```text
//! cargo bench -p switchyard --bench grpc
//! ```
//!
//! The model and the server of the race, under its native fallback, and furnace over gRPC where it is built
//! (`tests/peers`). `h2load` (Debian's nghttp2-client)
//! keeps connections busy with one request at a time over either protocol, with the same client code
//! around both. Rounds alternate; the table has medians over the rounds.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "race/contender.rs"]
#[allow(dead_code)]
mod contender;
#[path = "race/h2load.rs"]
mod h2load;
#[path = "race/load.rs"]
#[allow(dead_code)]
mod load;
#[path = "race/model.rs"]
#[allow(dead_code)]
mod model;
#[path = "race/peers.rs"]
#[allow(dead_code)]
mod peers;

use std::path::Path;

use bytes::Bytes;
use contender::{Contender, ServerOptions};
use h2load::{Figures, H2load, Requests};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use load::Body;
use model::{APP, CLASSES, Names, SAMPLES, beat};
use prost::Message;
use switchyard_protocol::grpc::frame;
use switchyard_protocol::grpc::messages::inference::model_infer_request::{
    InferInputTensor, InferRequestedOutputTensor,
};
use switchyard_protocol::grpc::messages::inference::{ModelInferRequest, ModelInferResponse};

const CONCURRENCIES: [usize; 3] = [1, 16, 64];

const CALL: &str = "/inference.GRPCInferenceService/ModelInfer";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http,
    Grpc,
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (seconds, rounds) = if quick { (2, 3) } else { (4, 7) };
    let folder = tempfile::tempdir().unwrap();
    model::write_zoo(&folder.path().join("zoo"));
    let server = contender::ours("grpc", folder.path(), ServerOptions::fallback());
    let bodies = Bodies::write(folder.path());
    let mut furnace = peers::built(&folder.path().join("zoo"), |name| name == "furnace").pop();
    if let Some(furnace) = &mut furnace {
        let (host, port) = furnace.address().rsplit_once(':').unwrap();
        let next = port.parse::<u16>().unwrap() + 1;
        furnace.grpc = Some(format!("{host}:{next}"));
    }
    let ours = [(&server, Protocol::Http), (&server, Protocol::Grpc)];
    let peer = furnace.iter().map(|furnace| (furnace, Protocol::Grpc));
    let runners: Vec<_> = ours.into_iter().chain(peer).collect();
    for (server, protocol) in &runners {
        if *protocol == Protocol::Grpc {
            check(server);
        }
        bodies.run(server, *protocol, 4, 1);
    }
    println!("| connections | protocol | p50 ms | of HTTP | p99 ms | requests/s |");
    println!("|---:|---|---:|---:|---:|---:|");
    for connections in CONCURRENCIES {
        let mut runs: Vec<_> = runners.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            eprintln!("round {round}: {connections} connections");
            for (own, (server, protocol)) in runs.iter_mut().zip(&runners) {
                own.push(bodies.run(server, *protocol, connections, seconds));
            }
        }
        let figures: Vec<_> = runs.iter().map(|own| Figures::median(own)).collect();
        let http = figures[0];
        let names = ["HTTP, binary", "gRPC", "furnace, gRPC"];
        for (name, figures) in names.iter().zip(&figures) {
            let Figures {
                p50_ms,
                p99_ms,
                per_s,
            } = figures;
            let ratio = p50_ms / http.p50_ms;
            println!(
                "| {connections} | {name} | {p50_ms:.3} | {ratio:.2} | {p99_ms:.3} | {per_s:.0} |"
            );
        }
    }
}

fn request(names: Names) -> ModelInferRequest {
    let blob: Vec<u8> = beat().into_iter().flat_map(f32::to_le_bytes).collect();
    ModelInferRequest {
        model_name: APP.to_owned(),
        inputs: vec![InferInputTensor {
            name: names.input.to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![1, SAMPLES as i64],
            ..InferInputTensor::default()
        }],
        outputs: vec![InferRequestedOutputTensor {
            name: names.output.to_owned(),
            ..InferRequestedOutputTensor::default()
        }],
        raw_input_contents: vec![blob.into()],
        ..ModelInferRequest::default()
    }
}

/// One call, whose answer must be one: over HTTP/2 a failure has status 200 too.
fn check(server: &Contender) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let address = server.grpc.as_ref().unwrap();
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        let request = Request::post(format!("http://{address}{CALL}"))
            .header("content-type", "application/grpc")
            .body(Full::new(Bytes::from(
                frame(&request(server.names)).unwrap(),
            )))
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let message = answer.into_body().collect().await.unwrap().to_bytes();
        let response = ModelInferResponse::decode(&message[5..]).unwrap();
        assert_eq!(response.raw_output_contents[0].len(), 4 * CLASSES);
    });
}

/// The bodies that the client sends.
struct Bodies {
    client: H2load,
    /// Bytes of JSON before the tensor.
    json_bytes: usize,
    binary: Vec<u8>,
}

impl Bodies {
    fn write(folder: &Path) -> Self {
        let (json_bytes, binary) = Body::Binary.bytes();
        Self {
            client: H2load::new(folder),
            json_bytes: json_bytes.unwrap(),
            binary,
        }
    }

    fn run(
        &self,
        server: &Contender,
        protocol: Protocol,
        connections: usize,
        seconds: u64,
    ) -> Figures {
        let run = |requests| self.client.run(&requests, connections, seconds);
        match protocol {
            Protocol::Http => run(Requests {
                url: &server.url,
                is_http1: true,
                headers: &[format!(
                    "inference-header-content-length: {}",
                    self.json_bytes
                )],
                body: &self.binary,
            }),
            Protocol::Grpc => run(Requests {
                url: &format!("http://{}{CALL}", server.grpc.as_ref().unwrap()),
                is_http1: false,
                headers: &[
                    "content-type: application/grpc".to_owned(),
                    "te: trailers".to_owned(),
                ],
                body: &frame(&request(server.names)).unwrap(),
            }),
        }
    }
}
