use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::{Value, json};
use switchyard_server::ingress::TensorData;

use super::test_bed::{Answer, ONE_ROW, TestServer};

const INFER: &str = "/v2/models/linear/infer";
const EVERY_TYPE: &str = "/v2/models/echo/every%20type/infer";
const JSON_LENGTH: &str = "inference-header-content-length";

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// JSON and blobs of an answer, split by its header.
fn split(answer: &Answer) -> (Value, &[u8]) {
    assert_eq!(
        answer.header("content-type"),
        Some("application/octet-stream")
    );
    let length: usize = answer.header(JSON_LENGTH).unwrap().parse().unwrap();
    let (json, blobs) = answer.body.split_at(length);
    (serde_json::from_slice(json).unwrap(), blobs)
}

#[tokio::test]
async fn json_in_json_out() {
    let server = TestServer::with_defaults().await;
    let body = json!({
        "id": "42",
        "inputs": [{"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [[1, 2, 3], [4, 5, 6.5]]}],
    });
    let answer = server.post(INFER, body.to_string()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header(JSON_LENGTH), None);
    insta::assert_snapshot!(
        "answer",
        serde_json::to_string_pretty(&answer.json()).unwrap()
    );
}

#[tokio::test]
async fn only_the_wanted_outputs_come_back() {
    let server = TestServer::with_defaults().await;
    let body = ONE_ROW.replacen('{', r#"{"outputs":[{"name":"label"}],"#, 1);
    let answer = server.post(INFER, body).await.json();
    assert_eq!(
        answer["outputs"],
        json!([{"name": "label", "datatype": "BYTES", "shape": [1], "data": ["row 0"]}])
    );
}

#[tokio::test]
async fn binary_in_binary_out() {
    let server = TestServer::with_defaults().await;
    let json = json!({
        "parameters": {"binary_data_output": true},
        "inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}],
    })
    .to_string();
    let mut body = json.clone().into_bytes();
    body.extend_from_slice(&floats(&[1.0, 2.0, 3.0]));
    let headers = [(JSON_LENGTH, &*json.len().to_string())];
    let answer = server.post_with(INFER, &headers, body).await;
    let (json, blobs) = split(&answer);
    assert_eq!(
        json["outputs"][0]["parameters"],
        json!({"binary_data_size": 12})
    );
    assert_eq!(json["outputs"][0].get("data"), None);
    let (y, label) = blobs.split_at(12);
    assert_eq!(y, floats(&[3.0, 5.0, 7.0]));
    assert_eq!(label, b"\x05\0\0\0row 0");
}

#[tokio::test]
async fn each_output_may_choose_its_form() {
    let server = TestServer::with_defaults().await;
    let body = ONE_ROW.replacen(
        '{',
        r#"{"parameters":{"binary_data_output":true},
            "outputs":[{"name":"label","parameters":{"binary_data":false}},{"name":"y"}],"#,
        1,
    );
    let answer = server.post(INFER, body).await;
    let (json, blobs) = split(&answer);
    assert_eq!(json["outputs"][0]["data"], json!(["row 0"]));
    assert_eq!(json["outputs"][1]["parameters"]["binary_data_size"], 12);
    assert_eq!(blobs, floats(&[3.0, 5.0, 7.0]));
}

#[tokio::test]
async fn a_raw_request_is_answered_in_binary() {
    let server = TestServer::with_defaults().await;
    let body = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let answer = server.post_with(INFER, &[(JSON_LENGTH, "0")], body).await;
    let (json, blobs) = split(&answer);
    assert_eq!(json["outputs"][0]["shape"], json!([2, 3]));
    assert_eq!(blobs[..24], floats(&[3.0, 5.0, 7.0, 9.0, 11.0, 13.0]));
}

#[tokio::test]
async fn every_datatype_comes_back_as_it_went() {
    let server = TestServer::with_defaults().await;
    let values = [
        ("BOOL", json!([true, false])),
        ("UINT8", json!([0, u8::MAX])),
        ("UINT16", json!([0, u16::MAX])),
        ("UINT32", json!([0, u32::MAX])),
        ("UINT64", json!([0, u64::MAX])),
        ("INT8", json!([i8::MIN, i8::MAX])),
        ("INT16", json!([i16::MIN, i16::MAX])),
        ("INT32", json!([i32::MIN, i32::MAX])),
        ("INT64", json!([i64::MIN, i64::MAX])),
        ("FP32", json!([0.625, -1.5])),
        ("FP64", json!([1.0e300, 0.1])),
        ("BYTES", json!(["\u{e9}\n", ""])),
    ];
    let mut inputs: Vec<_> = values
        .iter()
        .map(|(name, data)| json!({"name": name, "shape": [1, 2], "datatype": name, "data": data}))
        .collect();
    for half in ["FP16", "BF16"] {
        let parameters = json!({"binary_data_size": 4});
        inputs.push(
            json!({"name": half, "shape": [1, 2], "datatype": half, "parameters": parameters}),
        );
    }
    let outputs: Vec<_> = inputs
        .iter()
        .map(|input| json!({"name": input["name"], "parameters": {"binary_data": input.get("data").is_none()}}))
        .collect();
    let json = json!({"inputs": inputs, "outputs": outputs}).to_string();
    let mut body = json.clone().into_bytes();
    body.extend_from_slice(b"abcdefgh");
    let headers = [(JSON_LENGTH, &*json.len().to_string())];
    let answer = server.post_with(EVERY_TYPE, &headers, body).await;
    let (json, blobs) = split(&answer);
    for (index, (name, data)) in values.iter().enumerate() {
        assert_eq!(json["outputs"][index]["data"], *data, "{name}");
    }
    assert_eq!(blobs, b"abcdefgh");
    let call = server.backend.last_call.lock().unwrap().clone().unwrap();
    assert_eq!(call.app, super::test_bed::EVERY_TYPE);
    assert_eq!(call.inputs[9].data, TensorData::F16(vec![0x6261, 0x6463]));
}

#[tokio::test]
async fn compression_works_both_ways() {
    let server = TestServer::with_defaults().await;
    let plain = server.post(INFER, ONE_ROW).await.json();

    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(ONE_ROW.as_bytes()).unwrap();
    let headers = [("content-encoding", "gzip"), ("accept-encoding", "gzip")];
    let answer = server
        .post_with(INFER, &headers, gzip.finish().unwrap())
        .await;
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut body = String::new();
    GzDecoder::new(&*answer.body)
        .read_to_string(&mut body)
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), plain);

    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
    deflate.write_all(ONE_ROW.as_bytes()).unwrap();
    let headers = [
        ("content-encoding", "deflate"),
        ("accept-encoding", "deflate"),
    ];
    let answer = server
        .post_with(INFER, &headers, deflate.finish().unwrap())
        .await;
    assert_eq!(answer.header("content-encoding"), Some("deflate"));
    let mut body = String::new();
    ZlibDecoder::new(&*answer.body)
        .read_to_string(&mut body)
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), plain);
}

/// The header counts the uncompressed JSON, in both directions.
#[tokio::test]
async fn the_json_length_is_that_of_the_plain_body() {
    let server = TestServer::with_defaults().await;
    let json = json!({
        "parameters": {"binary_data_output": true},
        "inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}],
    })
    .to_string();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(json.as_bytes()).unwrap();
    gzip.write_all(&floats(&[1.0, 2.0, 3.0])).unwrap();
    let headers = [
        ("content-encoding", "gzip"),
        ("accept-encoding", "gzip"),
        (JSON_LENGTH, &*json.len().to_string()),
    ];
    let answer = server
        .post_with(INFER, &headers, gzip.finish().unwrap())
        .await;
    let length: usize = answer.header(JSON_LENGTH).unwrap().parse().unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(&*answer.body)
        .read_to_end(&mut plain)
        .unwrap();
    assert!(serde_json::from_slice::<Value>(&plain[..length]).is_ok());
    assert_eq!(plain[length..][..12], floats(&[3.0, 5.0, 7.0]));
}

/// Above the limit of inline decoding, so that the blocking pool decodes and encodes it.
#[tokio::test]
async fn a_megabyte_comes_back_whole() {
    let server = TestServer::with_defaults().await;
    let count = 300_000;
    let data: Vec<_> = (0..count).map(|n| n % 100).collect();
    let inputs: Vec<_> = [
        "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP32",
        "FP64", "BYTES",
    ]
    .iter()
    .map(|name| {
        let data = match *name {
            "UINT8" => json!(data),
            "BOOL" => json!([true]),
            "BYTES" => json!(["x"]),
            _ => json!([1]),
        };
        let width = data.as_array().unwrap().len();
        json!({"name": name, "datatype": name, "shape": [1, width], "data": data})
    })
    .collect();
    let mut inputs = inputs;
    for half in ["FP16", "BF16"] {
        inputs.push(json!({"name": half, "datatype": half, "shape": [1, 0], "parameters": {"binary_data_size": 0}}));
    }
    let json = json!({"inputs": inputs, "outputs": [{"name": "UINT8"}]}).to_string();
    let headers = [(JSON_LENGTH, &*json.len().to_string())];
    let answer = server.post_with(EVERY_TYPE, &headers, json.clone()).await;
    assert_eq!(answer.json()["outputs"][0]["data"], json!(data));
}
