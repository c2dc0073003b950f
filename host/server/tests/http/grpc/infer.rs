//! Inferences: tensors in both forms, of every datatype.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use prost::Message as _;
use switchyard_protocol::Datatype;
use switchyard_protocol::grpc::messages::inference::infer_parameter::ParameterChoice;
use switchyard_protocol::grpc::messages::inference::model_infer_request::{
    InferInputTensor, InferRequestedOutputTensor,
};
use switchyard_protocol::grpc::messages::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse,
};

use super::client::{Client, SERVICE, frame, one_row, rows, typed_rows};
use crate::http::test_bed::{EVERY_TYPE, TestServer};

fn f32s(raw: &Bytes) -> Vec<f32> {
    let (chunks, _) = raw.as_chunks::<4>();
    chunks
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect()
}

#[tokio::test]
async fn raw_and_typed_tensors_get_the_same_answer() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    for request in [
        rows("linear", &[1.0, 2.0, 3.0]),
        typed_rows("linear", &[1.0, 2.0, 3.0]),
    ] {
        let answer = client.infer(&request).await;
        assert_eq!(
            (&*answer.model_name, &*answer.model_version),
            ("linear", "small")
        );
        let names: Vec<_> = answer.outputs.iter().map(|output| &*output.name).collect();
        assert_eq!(names, ["y", "label"]);
        assert_eq!(answer.outputs[0].shape, [1, 3]);
        assert_eq!(f32s(&answer.raw_output_contents[0]), [3.0, 5.0, 7.0]);
        assert_eq!(answer.raw_output_contents[1], &b"\x05\0\0\0row 0"[..]);
        assert_eq!(
            answer.parameters["variant"].parameter_choice,
            Some(ParameterChoice::StringParam("small".to_owned()))
        );
    }
}

#[tokio::test]
async fn the_clients_span_reaches_the_backend() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let path = format!("{SERVICE}ModelInfer");
    let body = frame(&rows("linear", &[1.0, 2.0, 3.0]));
    let ended = client
        .call_with(&path, &[("traceparent", header)], body)
        .await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let call = server.backend.last_call.lock().unwrap().clone().unwrap();
    assert_eq!(call.parent.unwrap().span_id, 0x00f0_67aa_0ba9_02b7);
}

#[tokio::test]
async fn every_datatype_comes_back() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let raw = |datatype: &Datatype| match datatype.size() {
        Some(size) => Bytes::from(vec![1; 2 * size]),
        None => Bytes::from_static(b"\x01\0\0\0a\0\0\0\0"),
    };
    let request = ModelInferRequest {
        model_name: "echo/every type".to_owned(),
        id: "r-1".to_owned(),
        inputs: Datatype::ALL
            .iter()
            .map(|datatype| InferInputTensor {
                name: datatype.name().to_owned(),
                datatype: datatype.name().to_owned(),
                shape: vec![1, 2],
                ..InferInputTensor::default()
            })
            .collect(),
        raw_input_contents: Datatype::ALL.iter().map(raw).collect(),
        ..ModelInferRequest::default()
    };
    let answer = client.infer(&request).await;
    assert_eq!(answer.id, "r-1");
    assert_eq!(answer.raw_output_contents, request.raw_input_contents);
    let datatypes: Vec<_> = answer
        .outputs
        .iter()
        .map(|output| &*output.datatype)
        .collect();
    let expected: Vec<_> = Datatype::ALL
        .iter()
        .map(|datatype| datatype.name())
        .collect();
    assert_eq!(datatypes, expected);
    assert_eq!(
        server
            .backend
            .last_call
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .app,
        EVERY_TYPE
    );
}

#[tokio::test]
async fn outputs_parameters_and_versions_are_taken() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let parameter = |choice| InferParameter {
        parameter_choice: Some(choice),
    };
    let request = ModelInferRequest {
        model_version: "large".to_owned(),
        parameters: [
            (
                "priority".to_owned(),
                parameter(ParameterChoice::Uint64Param(2)),
            ),
            (
                "timeout".to_owned(),
                parameter(ParameterChoice::Int64Param(5_000_000)),
            ),
        ]
        .into(),
        outputs: vec![InferRequestedOutputTensor {
            name: "y".to_owned(),
            parameters: [(
                "classification".to_owned(),
                parameter(ParameterChoice::Int64Param(2)),
            )]
            .into(),
        }],
        ..one_row("linear")
    };
    let answer = client.infer(&request).await;
    assert_eq!(answer.model_version, "large");
    assert_eq!(answer.outputs[0].datatype, "BYTES");
    assert_eq!(answer.outputs[0].shape, [1, 2]);
    assert_eq!(
        answer.raw_output_contents[0],
        &b"\x0a\0\0\x007.000000:2\x0a\0\0\x005.000000:1"[..]
    );
    let call = server.backend.last_call.lock().unwrap().clone().unwrap();
    assert_eq!((call.priority, call.timeout_us), (2, Some(5_000_000)));
    for version in ["1", "latest"] {
        let request = ModelInferRequest {
            model_version: version.to_owned(),
            ..one_row("linear")
        };
        client.infer(&request).await;
        let call = server.backend.last_call.lock().unwrap().clone().unwrap();
        assert_eq!(call.variant, None, "the policy chooses");
    }
}

/// A message of many frames, which is decoded off the async threads.
#[tokio::test]
async fn a_message_of_megabytes_is_read() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let datatypes = Datatype::ALL.iter();
    let elements = |datatype: &Datatype| {
        if *datatype == Datatype::F64 {
            262_144
        } else {
            1
        }
    };
    let request = ModelInferRequest {
        model_name: "echo/every type".to_owned(),
        inputs: datatypes
            .clone()
            .map(|datatype| InferInputTensor {
                name: datatype.name().to_owned(),
                datatype: datatype.name().to_owned(),
                shape: vec![1, elements(datatype)],
                ..InferInputTensor::default()
            })
            .collect(),
        raw_input_contents: datatypes
            .map(|datatype| {
                let size = datatype.size().unwrap_or(4);
                vec![0; size * elements(datatype) as usize].into()
            })
            .collect(),
        ..ModelInferRequest::default()
    };
    let answer = client.infer(&request).await;
    assert_eq!(answer.raw_output_contents, request.raw_input_contents);
}

#[tokio::test]
async fn compressed_messages_are_read() {
    let server = TestServer::with_defaults().await;
    let mut client = Client::of(&server).await;
    let plain = one_row("linear").encode_to_vec();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&plain).unwrap();
    let path = format!("{SERVICE}ModelInfer");
    for (coding, packed) in [
        ("gzip", gzip.finish().unwrap()),
        ("deflate", zlib.finish().unwrap()),
    ] {
        let length = (packed.len() as u32).to_be_bytes();
        let body = [&[1][..], &length, &packed].concat();
        let ended = client
            .call_with(&path, &[("grpc-encoding", coding)], body.into())
            .await;
        let answer: ModelInferResponse = ended.message();
        assert_eq!(f32s(&answer.raw_output_contents[0]), [3.0, 5.0, 7.0]);
    }
    let body = super::client::frame(&one_row("linear"));
    let ended = client
        .call_with(&path, &[("grpc-encoding", "br")], body)
        .await;
    assert_eq!(ended.code, 12);
    assert_eq!(
        ended.trailers["grpc-accept-encoding"],
        "identity,gzip,deflate"
    );
}
