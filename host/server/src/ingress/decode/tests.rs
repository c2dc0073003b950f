use super::*;
use crate::ingress::tensor::Shape;

fn spec(name: &str, datatype: Datatype, shape: &[i64]) -> TensorSpec {
    TensorSpec {
        name: name.to_owned(),
        datatype,
        shape: shape.to_vec(),
    }
}

fn app(inputs: Vec<TensorSpec>) -> AppInfo {
    AppInfo {
        name: "heart".to_owned(),
        variants: vec!["cnn".to_owned()],
        platform: "test".to_owned(),
        inputs,
        outputs: vec![
            spec("scores", Datatype::F32, &[3]),
            spec("half", Datatype::F16, &[3]),
        ],
        max_batch_rows: 4,
    }
}

fn one_input() -> AppInfo {
    app(vec![spec("ecg", Datatype::F32, &[3])])
}

/// Decodes with only the JSON-able output asked for, which most tests want.
fn decode_json(app: &AppInfo, inputs: &str) -> Result<DecodedRequest, ProtocolError> {
    let json = format!(r#"{{"inputs":{inputs},"outputs":[{{"name":"scores"}}]}}"#);
    decode_as(app, Framing::Json, json.as_bytes())
}

fn decode_as(
    app: &AppInfo,
    framing: Framing,
    body: &[u8],
) -> Result<DecodedRequest, ProtocolError> {
    let target = Target {
        app_index: 7,
        app,
        variant: Some(0),
        framing,
    };
    decode(target, &Bytes::copy_from_slice(body))
}

/// A body of JSON and blobs, framed.
fn decode_blobs(app: &AppInfo, json: &str, blobs: &[u8]) -> Result<DecodedRequest, ProtocolError> {
    let mut body = json.as_bytes().to_vec();
    body.extend_from_slice(blobs);
    decode_as(app, Framing::JsonThenBlobs(json.len()), &body)
}

#[test]
fn a_call_carries_everything_the_client_said() {
    let json = br#"{
        "id": "r1",
        "parameters": {"timeout": 500, "priority": "2", "min_accuracy": 0.9},
        "inputs": [{"name": "ecg", "shape": [2, 3], "datatype": "FP32", "data": [[1,2,3],[4,5,6]]}],
        "outputs": [{"name": "half", "parameters": {"binary_data": true}}, {"name": "scores"}]
    }"#;
    let decoded = decode_as(&one_input(), Framing::Json, json).unwrap();
    assert_eq!(
        decoded.call,
        InferCall {
            app: 7,
            variant: Some(0),
            rows: 2,
            inputs: vec![Tensor {
                shape: Shape::from_slice(&[2, 3]),
                data: TensorData::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            }],
            timeout_us: Some(500),
            priority: 2,
            min_accuracy: Some(0.9),
        }
    );
    assert_eq!(decoded.id.as_deref(), Some("r1"));
    let expected = [
        Wanted {
            spec: 1,
            binary: true,
        },
        Wanted {
            spec: 0,
            binary: false,
        },
    ];
    assert_eq!(decoded.wanted.as_slice(), expected);
}

#[test]
fn inputs_end_up_in_the_apps_order_whatever_the_clients() {
    let app = app(vec![
        spec("a", Datatype::U8, &[1]),
        spec("b", Datatype::Bool, &[]),
    ]);
    let json = r#"{
        "parameters": {"binary_data_output": true},
        "inputs": [
            {"name": "b", "shape": [1], "datatype": "BOOL", "parameters": {"binary_data_size": 1}},
            {"name": "a", "datatype": "UINT8", "data": [9], "shape": [1, 1]}
        ]
    }"#;
    let decoded = decode_blobs(&app, json, &[1]).unwrap();
    let data: Vec<_> = decoded
        .call
        .inputs
        .into_iter()
        .map(|input| input.data)
        .collect();
    assert_eq!(
        data,
        [TensorData::U8(vec![9]), TensorData::Bool(vec![true])]
    );
    assert!(decoded.wanted.iter().all(|output| output.binary));
}

#[test]
fn every_mismatch_names_its_field() {
    let wrong = [
        ("[]", "inputs: \"ecg\" is missing"),
        (
            r#"[{"name":"eeg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]"#,
            "inputs[0].name: unknown input \"eeg\"; app \"heart\" has: ecg",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"INT64","data":[1,2,3]}]"#,
            "inputs[0].datatype: expected FP32, got INT64",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP31","data":[1,2,3]}]"#,
            "inputs[0].datatype: expected FP32, got the unknown datatype \"FP31\"",
        ),
        (
            r#"[{"name":"ecg","shape":[3],"datatype":"FP32","data":[1,2,3]}]"#,
            "inputs[0].shape: expected [rows, 3], got [3]; the first dimension is the batch",
        ),
        (
            r#"[{"name":"ecg","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]"#,
            "inputs[0].shape: expected [rows, 3], got [1, 4]; the first dimension is the batch",
        ),
        (
            r#"[{"name":"ecg","shape":[0,3],"datatype":"FP32","data":[]}]"#,
            "inputs[0].shape: expected 1 to 4 rows, got 0",
        ),
        (
            r#"[{"name":"ecg","shape":[5,3],"datatype":"FP32","data":[]}]"#,
            "inputs[0].shape: expected 1 to 4 rows, got 5",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2]}]"#,
            "inputs[0].data: expected 3 elements, got 2",
        ),
        (
            r#"[{"data":[1,2,3,4],"name":"ecg","shape":[1,3],"datatype":"FP32"}]"#,
            "inputs[0].data: expected 3 elements, got 4",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32"}]"#,
            "inputs[0].data: is missing, and so is parameters.binary_data_size",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12}}]"#,
            "inputs[0].parameters.binary_data_size: is set, but the header \
             Inference-Header-Content-Length is missing",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3],"parameters":{"binary_data_size":12}}]"#,
            "inputs[0].data: is set beside parameters.binary_data_size; send one of them",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32","parameters":{"shared_memory_region":"r"}}]"#,
            "inputs[0].parameters.shared_memory_region: shared memory is not supported",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]},
                {"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]"#,
            "inputs[1].name: \"ecg\" is there twice",
        ),
    ];
    for (inputs, says) in wrong {
        let error = decode_json(&one_input(), inputs).unwrap_err();
        assert_eq!(error.to_string(), says, "{inputs}");
        assert_eq!(error.status(), 400);
    }
}

#[test]
fn inputs_must_agree_on_their_rows() {
    let app = app(vec![
        spec("a", Datatype::U8, &[]),
        spec("b", Datatype::U8, &[]),
    ]);
    let inputs = r#"[{"name":"a","shape":[1],"datatype":"UINT8","data":[1]},
                     {"name":"b","shape":[2],"datatype":"UINT8","data":[1,2]}]"#;
    assert_eq!(
        decode_json(&app, inputs).unwrap_err().to_string(),
        "inputs[1].shape: has 2 rows, the inputs before it have 1"
    );
}

#[test]
fn blobs_must_be_whole_and_all_used() {
    let app = one_input();
    let json = |size: usize| {
        format!(
            r#"{{"parameters":{{"binary_data_output":true}},"inputs":[{{"name":"ecg",
               "shape":[1,3],"datatype":"FP32","parameters":{{"binary_data_size":{size}}}}}]}}"#
        )
    };
    assert!(decode_blobs(&app, &json(12), &[0; 12]).is_ok());
    for (size, sent, says) in [
        (
            12,
            10,
            "inputs[0].parameters.binary_data_size: is 12, the body has 10 bytes left",
        ),
        (
            10,
            10,
            "inputs[0].parameters.binary_data_size: expected 12 bytes for 3 elements of FP32, got 10",
        ),
        (12, 13, "body: 1 bytes follow the last binary tensor"),
    ] {
        let error = decode_blobs(&app, &json(size), &vec![0; sent]).unwrap_err();
        assert_eq!(error.to_string(), says);
    }
    assert_eq!(
        decode_as(&app, Framing::JsonThenBlobs(100), b"{}")
            .unwrap_err()
            .to_string(),
        "Inference-Header-Content-Length: is 100, the body has 2 bytes"
    );
}

#[test]
fn outputs_are_checked_before_anything_runs() {
    let app = one_input();
    let input = r#"{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}"#;
    for (outputs, says) in [
        (
            r#"[{"name":"labels"}]"#,
            "outputs[0].name: unknown output \"labels\"; app \"heart\" has: scores, half",
        ),
        (
            r#"[{"name":"scores"},{"name":"scores"}]"#,
            "outputs[1].name: \"scores\" is there twice",
        ),
        (
            r#"[{"name":"scores","parameters":{"classification":3}}]"#,
            "outputs[0].parameters.classification: is not supported",
        ),
        (
            "[]",
            "outputs: \"half\" is FP16, which has no JSON form; \
             ask for it with parameters.binary_data",
        ),
    ] {
        let json = format!(r#"{{"inputs":[{input}],"outputs":{outputs}}}"#);
        let error = decode_as(&app, Framing::Json, json.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), says);
    }
}

#[test]
fn a_raw_body_tells_its_rows_by_its_size() {
    let app = one_input();
    let decoded = decode_as(&app, Framing::Raw, &[0; 24]).unwrap();
    assert_eq!(decoded.call.rows, 2);
    assert!(decoded.wanted.iter().all(|output| output.binary));
    assert_eq!(
        decode_as(&app, Framing::Raw, &[0; 26])
            .unwrap_err()
            .to_string(),
        "body: expected 24 bytes for 6 elements of FP32, got 26"
    );
    assert_eq!(
        decode_as(&app, Framing::Raw, &[]).unwrap_err().to_string(),
        "body: expected 12 bytes for 3 elements of FP32, got 0"
    );
}

#[test]
fn a_raw_body_may_fill_one_variable_dimension() {
    let variable = app(vec![spec("x", Datatype::F32, &[2, -1])]);
    let decoded = decode_as(&variable, Framing::Raw, &[0; 40]).unwrap();
    assert_eq!(decoded.call.inputs[0].shape.as_slice(), [1, 2, 5]);

    let twice = app(vec![spec("x", Datatype::F32, &[-1, -1])]);
    let error = decode_as(&twice, Framing::Raw, &[0; 40]).unwrap_err();
    assert!(
        error.to_string().contains("2 variable dimensions"),
        "{error}"
    );

    let two_inputs = app(vec![
        spec("a", Datatype::U8, &[]),
        spec("b", Datatype::U8, &[]),
    ]);
    let error = decode_as(&two_inputs, Framing::Raw, &[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Inference-Header-Content-Length: 0 sends one raw input, \"heart\" takes 2"
    );
}

#[test]
fn a_raw_bytes_body_is_one_element() {
    let text = app(vec![spec("text", Datatype::Bytes, &[1])]);
    let decoded = decode_as(&text, Framing::Raw, b"hello").unwrap();
    assert_eq!(
        decoded.call.inputs[0].data,
        TensorData::Bytes(vec![b"hello".to_vec()])
    );
    let pair = app(vec![spec("text", Datatype::Bytes, &[2])]);
    let error = decode_as(&pair, Framing::Raw, b"hello").unwrap_err();
    assert_eq!(
        error.to_string(),
        "body: a raw BYTES body is one element, [1, 2] has 2"
    );
}

#[test]
fn a_text_is_utf8_and_not_too_long() {
    let app = app(vec![spec("text", Datatype::Bytes, &[1])]);
    let json = |text: &str| {
        let inputs =
            format!(r#"[{{"name":"text","shape":[1,1],"datatype":"BYTES","data":["{text}"]}}]"#);
        decode_json(&app, &inputs)
    };
    let decoded = json("Gr\u{fc}ezi").unwrap();
    assert_eq!(
        decoded.call.inputs[0].data,
        TensorData::Bytes(vec!["Gr\u{fc}ezi".into()])
    );
    assert_eq!(
        json(&"a".repeat(65_537)).unwrap_err().to_string(),
        "inputs[0].data: element 0: a text of 65537 bytes, the limit is 65536"
    );
    let error = decode_as(&app, Framing::Raw, b"caf\xe9").unwrap_err();
    assert_eq!(error.status(), 400);
    assert!(
        error
            .to_string()
            .starts_with("body: element 0: no UTF-8 text"),
        "{error}"
    );
}

#[test]
fn the_framing_header_is_a_number() {
    assert_eq!(Framing::from_header(None), Ok(Framing::Json));
    assert_eq!(Framing::from_header(Some(b"0")), Ok(Framing::Raw));
    assert_eq!(
        Framing::from_header(Some(b" 12 ")),
        Ok(Framing::JsonThenBlobs(12))
    );
    assert_eq!(
        Framing::from_header(Some(b"-1")).unwrap_err().to_string(),
        "Inference-Header-Content-Length: expected a number of bytes, got \"-1\""
    );
}
