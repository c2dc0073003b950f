//! Requests: JSON, the binary extension and gRPC.

use bytes::Bytes;
use prost::Message;
use serde_json::{Value, json};
use switchyard_protocol::grpc::messages::inference::model_infer_request::InferInputTensor;
use switchyard_protocol::grpc::messages::inference::{InferTensorContents, ModelInferRequest};
use switchyard_protocol::grpc::{InferMessage, decode_infer};
use switchyard_protocol::{
    AppIndex, AppInfo, BytesContent, Datatype, InferCall, TensorData, TensorSpec, element_count,
    parse,
};

use super::allocator::peak_of;
use super::mutate::Form;
use super::target::Target;

fn spec(name: &str, datatype: Datatype, shape: &[i64]) -> TensorSpec {
    TensorSpec {
        name: name.to_owned(),
        datatype,
        shape: shape.to_vec(),
        largest: Vec::new(),
        content: BytesContent::Text,
    }
}

fn app() -> AppInfo {
    AppInfo {
        name: "heart".to_owned(),
        variants: vec!["cnn".to_owned()],
        platform: "test".to_owned(),
        inputs: vec![
            spec("ecg", Datatype::F32, &[3]),
            spec("text", Datatype::Bytes, &[1]),
            spec("count", Datatype::I64, &[-1]),
            spec("flag", Datatype::Bool, &[2]),
        ],
        outputs: vec![spec("scores", Datatype::F32, &[3])],
        max_batch_rows: 64,
        max_timeout_us: 60_000_000,
        non_finite: false,
        accuracy_max: 0.95,
        accuracies: vec![Some(0.9)],
        classes: ["no", "yes", "perhaps"].map(str::to_owned).to_vec(),
    }
}

fn inputs() -> Value {
    json!([
        {"name": "ecg", "shape": [2, 3], "datatype": "FP32",
         "data": [[0.5, -1e-7, 3.25], [1e9, 0, -0.125]]},
        {"name": "text", "shape": [2, 1], "datatype": "BYTES", "data": ["caf\u{e9}", "a \"b\""]},
        {"name": "count", "shape": [2, 2], "datatype": "INT64", "data": [1, -2, 9007199254740993_i64, 4]},
        {"name": "flag", "shape": [2, 2], "datatype": "BOOL", "data": [true, false, true, true]},
    ])
}

/// As clients write it: in one line, and with line breaks.
fn json_seeds() -> Vec<Vec<u8>> {
    let plain = json!({"inputs": inputs()});
    let full = json!({
        "id": "17",
        "parameters": {"timeout": 250_000, "priority": 2, "min_accuracy": 0.5, "own": [1, {"a": null}]},
        "inputs": inputs(),
        "outputs": [{"name": "scores", "parameters": {"classification": 2}}],
    });
    vec![
        plain.to_string().into_bytes(),
        serde_json::to_vec_pretty(&plain).unwrap(),
        full.to_string().into_bytes(),
        serde_json::to_vec_pretty(&full).unwrap(),
    ]
}

/// The call as JSON.
fn written(app: &AppInfo, call: &InferCall) -> Value {
    let tensors = app.inputs.iter().zip(&call.inputs);
    let inputs = tensors.map(|(spec, tensor)| {
        let data = match &tensor.data {
            TensorData::F32(values) => json!(values),
            TensorData::I64(values) => json!(values),
            TensorData::Bool(values) => json!(values),
            TensorData::Bytes(texts) => {
                json!(
                    texts
                        .iter()
                        .map(|text| String::from_utf8_lossy(text))
                        .collect::<Vec<_>>()
                )
            }
            other => panic!("{other:?} is the data of no input"),
        };
        json!({"name": spec.name, "datatype": spec.datatype.name(),
               "shape": tensor.shape.to_vec(), "data": data})
    });
    let inputs: Vec<Value> = inputs.collect();
    let mut parameters = json!({"priority": call.priority});
    if let Some(timeout) = call.timeout_us {
        parameters["timeout"] = json!(timeout);
    }
    if let Some(accuracy) = call.min_accuracy {
        parameters["min_accuracy"] = json!(accuracy);
    }
    json!({"parameters": parameters, "inputs": inputs})
}

/// An accepted call is consistent, and the same once it is written and read again.
fn is_sound(app: &AppInfo, call: &InferCall) {
    for tensor in &call.inputs {
        assert_eq!(element_count(&tensor.shape), Some(tensor.data.len()));
        assert_eq!(tensor.shape.first(), Some(&call.rows));
    }
    let text = written(app, call).to_string();
    let again = parse(app, None, &text.clone().into());
    assert_eq!(again.as_ref(), Ok(call), "{text}");
}

pub(crate) fn read_json(body: &[u8]) -> Result<(), String> {
    let app = app();
    let call =
        parse(&app, None, &Bytes::copy_from_slice(body)).map_err(|error| error.to_string())?;
    is_sound(&app, &call);
    Ok(())
}

#[test]
fn json_bodies() {
    let target = Target {
        name: "v2 JSON",
        seeds: json_seeds(),
        form: Form::Text,
        executions: 20_000,
        accepted_min: 0.04,
        memory_max: (1 << 20, 64),
    };
    target.run(read_json);
}

/// The length of the JSON part, then the body.
pub(crate) fn read_binary(input: &[u8]) -> Result<(), String> {
    let Some((length, body)) = input.split_first_chunk::<4>() else {
        return Err("shorter than a length".to_owned());
    };
    let length = u32::from_le_bytes(*length) as usize;
    let app = app();
    let body = Bytes::copy_from_slice(body);
    let call = parse(&app, Some(length), &body).map_err(|error| error.to_string())?;
    is_sound(&app, &call);
    Ok(())
}

fn blobs() -> [Vec<u8>; 4] {
    let floats = [0.5_f32, -1e-7, 3.25, 1e9, 0.0, -0.125];
    let texts = ["caf\u{e9}", "b"]
        .map(|text| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat());
    let counts = [1_i64, -2, i64::MAX, 4];
    [
        floats
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        texts.concat(),
        counts
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        vec![1, 0, 1, 1],
    ]
}

fn binary_seed(is_mixed: bool) -> Vec<u8> {
    let mut inputs = inputs();
    let mut body = Vec::new();
    for (at, blob) in blobs().iter().enumerate() {
        if is_mixed && at % 2 == 1 {
            continue;
        }
        let input = &mut inputs[at];
        input.as_object_mut().unwrap().remove("data");
        input["parameters"] = json!({"binary_data_size": blob.len()});
        body.extend_from_slice(blob);
    }
    let head = json!({"inputs": inputs}).to_string();
    [&(head.len() as u32).to_le_bytes(), head.as_bytes(), &body].concat()
}

#[test]
fn binary_bodies() {
    let target = Target {
        name: "v2 binary",
        seeds: vec![binary_seed(false), binary_seed(true)],
        form: Form::Binary,
        executions: 20_000,
        accepted_min: 0.015,
        memory_max: (1 << 20, 64),
    };
    target.run(read_binary);
}

pub(crate) fn read_grpc(message: &[u8]) -> Result<(), String> {
    let scanned = InferMessage::scan(Bytes::copy_from_slice(message));
    let scanned = scanned.map_err(|error| error.to_string())?;
    let stated = scanned.decoded_bytes() as u64;
    let (request, held) = peak_of(|| scanned.read());
    // The server reserves this much before it decodes.
    assert!(
        held <= stated + 4_096,
        "{held} bytes are held, {stated} were stated"
    );
    let request = request.map_err(|error| error.to_string())?;
    // Not the messages: NaN is not equal to itself.
    let bytes = request.encode_to_vec();
    let again = ModelInferRequest::decode(bytes.as_slice()).unwrap();
    assert_eq!(again.encode_to_vec(), bytes);
    let app = app();
    let decoded = decode_infer((AppIndex(0), &app), None, request);
    is_sound(&app, &decoded.map_err(|error| error.to_string())?.call);
    Ok(())
}

fn grpc_seed(is_raw: bool) -> Vec<u8> {
    let contents = [
        InferTensorContents {
            fp32_contents: vec![0.5, -1e-7, 3.25, 1e9, 0.0, -0.125],
            ..InferTensorContents::default()
        },
        InferTensorContents {
            bytes_contents: vec![Bytes::from("caf\u{e9}"), Bytes::from("b")],
            ..InferTensorContents::default()
        },
        InferTensorContents {
            int64_contents: vec![1, -2, i64::MAX, 4],
            ..InferTensorContents::default()
        },
        InferTensorContents {
            bool_contents: vec![true, false, true, true],
            ..InferTensorContents::default()
        },
    ];
    let app = app();
    let inputs = app
        .inputs
        .iter()
        .zip(contents)
        .map(|(spec, contents)| InferInputTensor {
            name: spec.name.clone(),
            datatype: spec.datatype.name().to_owned(),
            shape: match spec.shape[0] {
                3 => vec![2, 3],
                1 => vec![2, 1],
                _ => vec![2, 2],
            },
            contents: (!is_raw).then_some(contents),
            ..InferInputTensor::default()
        });
    let request = ModelInferRequest {
        model_name: "heart".to_owned(),
        id: "17".to_owned(),
        inputs: inputs.collect(),
        raw_input_contents: match is_raw {
            true => blobs().map(Bytes::from).to_vec(),
            false => Vec::new(),
        },
        ..ModelInferRequest::default()
    };
    request.encode_to_vec()
}

#[test]
fn grpc_messages() {
    let target = Target {
        name: "gRPC ModelInfer",
        seeds: vec![grpc_seed(false), grpc_seed(true)],
        form: Form::Binary,
        executions: 40_000,
        accepted_min: 0.05,
        memory_max: (1 << 20, 256),
    };
    target.run(read_grpc);
}
