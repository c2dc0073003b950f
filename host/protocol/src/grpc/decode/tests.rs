use prost::Message as _;

use super::*;
use crate::datatype::Datatype;
use crate::grpc::InferMessage;
use crate::grpc::messages::inference::InferParameter;
use crate::grpc::messages::inference::infer_parameter::ParameterChoice;
use crate::tensor::TensorData;

fn app(datatypes: &[Datatype], shape: &[i64]) -> AppInfo {
    let spec = |datatype: &Datatype| TensorSpec {
        name: datatype.name().to_owned(),
        datatype: *datatype,
        shape: shape.to_vec(),
        largest: Vec::new(),
        content: Default::default(),
    };
    let specs: Vec<_> = datatypes.iter().map(spec).collect();
    AppInfo {
        name: "echo".to_owned(),
        variants: vec!["only".to_owned()],
        platform: "test".to_owned(),
        inputs: specs.clone(),
        outputs: specs,
        max_batch_rows: 8,
        max_timeout_us: 1_000_000,
        non_finite: false,
        accuracy_max: 0.9,
        accuracies: vec![Some(0.9)],
        classes: Vec::new(),
    }
}

/// Through the wire, as the server reads it.
fn decode(app: &AppInfo, request: &ModelInferRequest) -> Result<DecodedRequest, String> {
    let message = InferMessage::scan(request.encode_to_vec().into());
    let request = message.and_then(InferMessage::read);
    let decoded = request.and_then(|request| decode_infer((AppIndex(0), app), None, request));
    decoded.map_err(|error| error.to_string())
}

fn input(datatype: Datatype, shape: &[i64]) -> InferInputTensor {
    InferInputTensor {
        name: datatype.name().to_owned(),
        datatype: datatype.name().to_owned(),
        shape: shape.to_vec(),
        ..InferInputTensor::default()
    }
}

/// Two rows of one element.
fn values(datatype: Datatype) -> (TensorData, Option<InferTensorContents>) {
    let empty = InferTensorContents::default;
    let (data, contents) = match datatype {
        Datatype::Bool => {
            let contents = InferTensorContents {
                bool_contents: vec![true, false],
                ..empty()
            };
            (TensorData::Bool(vec![true, false]), contents)
        }
        Datatype::U8 => {
            let contents = InferTensorContents {
                uint_contents: vec![7, 255],
                ..empty()
            };
            (TensorData::U8(vec![7, 255]), contents)
        }
        Datatype::U16 => {
            let contents = InferTensorContents {
                uint_contents: vec![7, 65_535],
                ..empty()
            };
            (TensorData::U16(vec![7, 65_535]), contents)
        }
        Datatype::U32 => {
            let contents = InferTensorContents {
                uint_contents: vec![7, u32::MAX],
                ..empty()
            };
            (TensorData::U32(vec![7, u32::MAX]), contents)
        }
        Datatype::U64 => {
            let contents = InferTensorContents {
                uint64_contents: vec![7, u64::MAX],
                ..empty()
            };
            (TensorData::U64(vec![7, u64::MAX]), contents)
        }
        Datatype::I8 => {
            let contents = InferTensorContents {
                int_contents: vec![-128, 127],
                ..empty()
            };
            (TensorData::I8(vec![-128, 127]), contents)
        }
        Datatype::I16 => {
            let contents = InferTensorContents {
                int_contents: vec![-7, 32_767],
                ..empty()
            };
            (TensorData::I16(vec![-7, 32_767]), contents)
        }
        Datatype::I32 => {
            let contents = InferTensorContents {
                int_contents: vec![-7, i32::MIN],
                ..empty()
            };
            (TensorData::I32(vec![-7, i32::MIN]), contents)
        }
        Datatype::I64 => {
            let contents = InferTensorContents {
                int64_contents: vec![-7, i64::MIN],
                ..empty()
            };
            (TensorData::I64(vec![-7, i64::MIN]), contents)
        }
        Datatype::F16 => return (TensorData::F16(vec![0x3c00, 0x7bff]), None),
        Datatype::Bf16 => return (TensorData::Bf16(vec![0x3f80, 0x4000]), None),
        Datatype::F32 => {
            let contents = InferTensorContents {
                fp32_contents: vec![0.5, -1.5],
                ..empty()
            };
            (TensorData::F32(vec![0.5, -1.5]), contents)
        }
        Datatype::F64 => {
            let contents = InferTensorContents {
                fp64_contents: vec![0.5, -1.5],
                ..empty()
            };
            (TensorData::F64(vec![0.5, -1.5]), contents)
        }
        Datatype::Bytes => {
            let texts = vec![Bytes::from_static(b"a"), Bytes::new()];
            let contents = InferTensorContents {
                bytes_contents: texts,
                ..empty()
            };
            (TensorData::Bytes(vec![b"a".to_vec(), Vec::new()]), contents)
        }
    };
    (data, Some(contents))
}

#[test]
fn every_datatype_is_read_raw_and_typed() {
    for datatype in Datatype::ALL {
        let app = app(&[datatype], &[1]);
        let (data, contents) = values(datatype);
        let mut raw = Vec::new();
        binary::encode(&data, &mut raw);
        let request = ModelInferRequest {
            inputs: vec![input(datatype, &[2, 1])],
            raw_input_contents: vec![raw.into()],
            ..ModelInferRequest::default()
        };
        let decoded = decode(&app, &request).unwrap();
        assert_eq!(decoded.call.rows, 2);
        assert_eq!(decoded.call.inputs[0].data, data, "{datatype:?} raw");
        let typed = ModelInferRequest {
            inputs: vec![InferInputTensor {
                contents,
                ..input(datatype, &[2, 1])
            }],
            ..ModelInferRequest::default()
        };
        match decode(&app, &typed) {
            Ok(decoded) => assert_eq!(decoded.call.inputs[0].data, data, "{datatype:?} typed"),
            Err(error) => {
                assert!(
                    matches!(datatype, Datatype::F16 | Datatype::Bf16),
                    "{error}"
                );
                assert!(error.contains("has no typed elements"), "{error}");
            }
        }
    }
}

#[test]
fn a_large_raw_tensor_stays_in_its_message() {
    let app = app(&[Datatype::F32], &[8_192]);
    let request = ModelInferRequest {
        inputs: vec![input(Datatype::F32, &[1, 8_192])],
        raw_input_contents: vec![vec![0; 4 * 8_192].into()],
        ..ModelInferRequest::default()
    };
    let message = Bytes::from(request.encode_to_vec());
    let range = message.as_ptr_range();
    let read = InferMessage::scan(message.clone()).unwrap().read().unwrap();
    let decoded = decode_infer((AppIndex(0), &app), None, read).unwrap();
    let TensorData::Wire(wire) = &decoded.call.inputs[0].data else {
        panic!("copied");
    };
    assert!(range.contains(&wire.bytes.as_ptr()));
}

#[test]
fn parameters_are_read_as_those_of_json() {
    let app = app(&[Datatype::F32], &[1]);
    let request = |parameters: &[(&str, ParameterChoice)]| {
        let parameters = parameters.iter().map(|(name, choice)| {
            let parameter_choice = Some(choice.clone());
            ((*name).to_owned(), InferParameter { parameter_choice })
        });
        ModelInferRequest {
            id: "r-1".to_owned(),
            parameters: parameters.collect(),
            inputs: vec![input(Datatype::F32, &[1, 1])],
            raw_input_contents: vec![vec![0; 4].into()],
            ..ModelInferRequest::default()
        }
    };
    let decoded = decode(
        &app,
        &request(&[
            ("timeout", ParameterChoice::Int64Param(5_000)),
            ("priority", ParameterChoice::Uint64Param(2)),
            ("min_accuracy", ParameterChoice::DoubleParam(0.5)),
            ("unknown", ParameterChoice::BoolParam(true)),
        ]),
    )
    .unwrap();
    assert_eq!(decoded.id.as_deref(), Some("r-1"));
    assert_eq!(
        (
            decoded.call.timeout_us,
            decoded.call.priority,
            decoded.call.min_accuracy
        ),
        (Some(5_000), 2, Some(0.5))
    );
    for (name, choice, message) in [
        (
            "timeout",
            ParameterChoice::StringParam("soon".to_owned()),
            "parameters.timeout: invalid value: string \"soon\", expected a whole number of \
             microseconds",
        ),
        (
            "timeout",
            ParameterChoice::Int64Param(2_000_000),
            "parameters.timeout: 2000000 us, must be 1 to 1000000 us, or 0 for the app's deadline \
             (server.timeout_max_ms)",
        ),
        (
            "min_accuracy",
            ParameterChoice::DoubleParam(f64::NAN),
            "parameters.min_accuracy: invalid type: null, expected a number from 0 to 1",
        ),
    ] {
        assert_eq!(
            decode(&app, &request(&[(name, choice)])).unwrap_err(),
            message
        );
    }
}

#[test]
fn wrong_requests_are_refused_by_field() {
    let app = app(&[Datatype::F32, Datatype::Bytes], &[1]);
    let good = || ModelInferRequest {
        inputs: vec![
            input(Datatype::F32, &[1, 1]),
            input(Datatype::Bytes, &[1, 1]),
        ],
        raw_input_contents: vec![vec![0; 4].into(), b"\x01\0\0\0a".to_vec().into()],
        ..ModelInferRequest::default()
    };
    assert!(decode(&app, &good()).is_ok());
    let refused = |change: &dyn Fn(&mut ModelInferRequest)| {
        let mut request = good();
        change(&mut request);
        decode(&app, &request).unwrap_err()
    };
    let shared = || {
        let parameter_choice = Some(ParameterChoice::StringParam("region".to_owned()));
        [(
            "shared_memory_region".to_owned(),
            InferParameter { parameter_choice },
        )]
        .into()
    };
    let cases: [(&dyn Fn(&mut ModelInferRequest), &str); 12] = [
        (
            &|r| r.inputs[1].name = "z".to_owned(),
            "inputs[1].name: unknown input \"z\"",
        ),
        (
            &|r| r.inputs[1] = r.inputs[0].clone(),
            "inputs[1].name: \"FP32\" appears twice",
        ),
        (
            &|r| r.inputs[0].datatype = "FP64".to_owned(),
            "inputs[0].datatype: expected FP32, got FP64",
        ),
        (
            &|r| r.inputs[0].shape = vec![1, 2],
            "inputs[0].shape: expected [rows, 1], got [1, 2]",
        ),
        (
            &|r| r.inputs[0].shape = vec![-1, 1],
            "inputs[0].shape: -1 in [-1, 1], expected dimensions",
        ),
        (
            &|r| r.inputs[0].shape = vec![9, 1],
            "inputs[0].shape: expected 1 to 8 rows, got 9",
        ),
        (
            &|r| drop(r.raw_input_contents.pop()),
            "raw_input_contents: has 1 tensors for 2 inputs",
        ),
        (
            &|r| r.raw_input_contents[0] = vec![0; 3].into(),
            "raw_input_contents[0]: expected 4 bytes for 1 elements of FP32, got 3",
        ),
        (
            &|r| r.raw_input_contents[0] = f32::NAN.to_le_bytes().to_vec().into(),
            "inputs[0].data: \"FP32\": element 0: expected a finite FP32 number",
        ),
        (
            &|r| r.inputs[0].contents = Some(Default::default()),
            "inputs[0].contents: is set together",
        ),
        (
            &|r| r.inputs[0].parameters = shared(),
            "inputs[0].parameters.shared_memory_region: is not",
        ),
        (
            &|r| r.id = "i".repeat(1_025),
            "id: has 1025 bytes, the limit is 1024",
        ),
    ];
    for (change, message) in cases {
        let error = refused(change);
        assert!(error.starts_with(message), "{error}, not {message}");
    }
    let missing = refused(&|request| {
        request.inputs.pop();
        request.raw_input_contents.pop();
    });
    assert_eq!(missing, "inputs: \"BYTES\" is missing");
}
