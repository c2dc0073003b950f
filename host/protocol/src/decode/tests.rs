mod accuracy;
mod contents;
mod raw;

use super::*;
use crate::app::{OutputIndex, TensorSpec, VariantIndex};
use crate::call::WantedOutput;
use crate::datatype::Datatype;
use crate::tensor::{Shape, Tensor, TensorData};

fn spec(name: &str, datatype: Datatype, shape: &[i64]) -> TensorSpec {
    TensorSpec {
        name: name.to_owned(),
        datatype,
        shape: shape.to_vec(),
        largest: Vec::new(),
        content: Default::default(),
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
        max_timeout_us: 60_000_000,
        non_finite: false,
        accuracy_max: 0.95,
        accuracies: vec![Some(0.9)],
        classes: ["no", "yes", "perhaps"].map(str::to_owned).to_vec(),
    }
}

fn one_input() -> AppInfo {
    app(vec![spec("ecg", Datatype::F32, &[3])])
}

/// Decodes a request for only the output that has a JSON form.
fn decode_json(app: &AppInfo, inputs: &str) -> Result<DecodedRequest, ProtocolError> {
    let json = format!(r#"{{"inputs":{inputs},"outputs":[{{"name":"scores"}}]}}"#);
    decode_as(app, BodyFraming::Json, json.as_bytes())
}

fn decode_as(
    app: &AppInfo,
    framing: BodyFraming,
    body: &[u8],
) -> Result<DecodedRequest, ProtocolError> {
    let target = DecodeTarget {
        app_index: AppIndex(7),
        app,
        variant: Some(VariantIndex(0)),
        framing,
    };
    decode(target, &Bytes::copy_from_slice(body))
}

/// Decodes a body of JSON and blobs, with its header.
fn decode_blobs(app: &AppInfo, json: &str, blobs: &[u8]) -> Result<DecodedRequest, ProtocolError> {
    let mut body = json.as_bytes().to_vec();
    body.extend_from_slice(blobs);
    decode_as(app, BodyFraming::JsonThenBlobs(json.len()), &body)
}

#[test]
fn a_call_carries_every_field_of_the_request() {
    let json = br#"{
        "id": "r1",
        "parameters": {"timeout": 500, "priority": "2", "min_accuracy": 0.9},
        "inputs": [{"name": "ecg", "shape": [2, 3], "datatype": "FP32", "data": [[1,2,3],[4,5,6]]}],
        "outputs": [{"name": "half", "parameters": {"binary_data": true}}, {"name": "scores"}]
    }"#;
    let decoded = decode_as(&one_input(), BodyFraming::Json, json).unwrap();
    assert_eq!(
        decoded.call,
        InferCall {
            app: AppIndex(7),
            variant: Some(VariantIndex(0)),
            rows: 2,
            inputs: vec![Tensor {
                shape: Shape::from_slice(&[2, 3]),
                data: TensorData::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            }],
            timeout_us: Some(500),
            waited_us: 0,
            parent: None,
            priority: 2,
            min_accuracy: Some(0.9),
            stages: None,
        }
    );
    assert_eq!(decoded.id.as_deref(), Some("r1"));
    let expected = [
        WantedOutput {
            output: OutputIndex(1),
            binary: true,
            classes: 0,
        },
        WantedOutput {
            output: OutputIndex(0),
            binary: false,
            classes: 0,
        },
    ];
    assert_eq!(decoded.wanted.as_slice(), expected);
}

#[test]
fn an_open_dimension_has_a_largest_size() {
    let mut input = spec("ecg", Datatype::F32, &[-1]);
    input.largest = vec![4];
    let app = app(vec![input]);
    let of = |size: usize| {
        let data: Vec<usize> = (0..size).collect();
        let input =
            format!(r#"[{{"name":"ecg","shape":[1,{size}],"datatype":"FP32","data":{data:?}}}]"#);
        decode_json(&app, &input).map_err(|error| error.to_string())
    };
    assert!(of(4).is_ok());
    assert_eq!(
        of(5).unwrap_err(),
        "inputs[0].shape: [5] after the rows is larger than [4], the largest shape that the app \
         takes"
    );
}

#[test]
fn inputs_come_in_the_apps_order() {
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
            "inputs[0].name: unknown input \"eeg\"; inputs of app \"heart\": ecg",
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
            "inputs[0].data: is set together with parameters.binary_data_size; send only one of them",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32","parameters":{"shared_memory_region":"r"}}]"#,
            "inputs[0].parameters.shared_memory_region: is not supported; send the tensor in the body",
        ),
        (
            r#"[{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]},
                {"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]"#,
            "inputs[1].name: \"ecg\" appears twice",
        ),
    ];
    for (inputs, message) in wrong {
        let error = decode_json(&one_input(), inputs).unwrap_err();
        assert_eq!(error.to_string(), message, "{inputs}");
        assert_eq!(error.status(), 400);
    }
}

/// The last one of a pair would count, and `data` would have been decoded with the first.
#[test]
fn fields_of_an_input_that_come_twice_are_refused() {
    let twice = [
        ("shape", r#""shape":[1,3]"#),
        ("datatype", r#""datatype":"FP32""#),
        ("name", r#""name":"ecg""#),
        ("data", r#""data":[1,2,3]"#),
        ("parameters", r#""parameters":{},"parameters":{}"#),
    ];
    for (field, again) in twice {
        let inputs =
            format!(r#"[{{"name":"ecg","shape":[1,2],"datatype":"INT64","data":[1,2],{again}}}]"#);
        let error = decode_json(&one_input(), &inputs).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(&format!("duplicate field `{field}`")),
            "{message}"
        );
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
    for (size, sent, message) in [
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
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(
        decode_as(&app, BodyFraming::JsonThenBlobs(100), b"{}")
            .unwrap_err()
            .to_string(),
        "Inference-Header-Content-Length: is 100, the body has 2 bytes"
    );
}

#[test]
fn wanted_outputs_are_checked() {
    let app = one_input();
    let input = r#"{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}"#;
    for (outputs, message) in [
        (
            r#"[{"name":"labels"}]"#,
            "outputs[0].name: unknown output \"labels\"; outputs of app \"heart\": scores, half",
        ),
        (
            r#"[{"name":"scores"},{"name":"scores"}]"#,
            "outputs[1].name: \"scores\" appears twice",
        ),
        (
            r#"[{"name":"scores","parameters":{"classification":4}}]"#,
            "outputs[0].parameters.classification: 4, must be 1 to 3, the values of a row of \
             \"scores\"",
        ),
        (
            r#"[{"name":"half","parameters":{"classification":1}}]"#,
            "outputs[0].parameters.classification: \"half\" is FP16, classes are ranked by FP32",
        ),
        (
            "[]",
            "outputs: \"half\" is FP16, which has no JSON form; \
             set its parameters.binary_data to true",
        ),
    ] {
        let json = format!(r#"{{"inputs":[{input}],"outputs":{outputs}}}"#);
        let error = decode_as(&app, BodyFraming::Json, json.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_timeout_beyond_the_limit_is_refused() {
    let with = |timeout: &str| {
        let json = format!(
            r#"{{"parameters":{{"timeout":{timeout}}},"inputs":[{{"name":"ecg","shape":[1,3],"datatype":"FP32","data":[1,2,3]}}],"outputs":[{{"name":"scores"}}]}}"#
        );
        decode_as(&one_input(), BodyFraming::Json, json.as_bytes())
    };
    assert_eq!(with("60000000").unwrap().call.timeout_us, Some(60_000_000));
    for timeout in [
        "60000001",
        "9223372036854775808",
        "\"18446744073709551615\"",
    ] {
        let error = with(timeout).unwrap_err();
        let number = timeout.trim_matches('"');
        assert_eq!(
            error.to_string(),
            format!(
                "parameters.timeout: {number} us, must be 1 to 60000000 us, or 0 for the app's \
                 deadline (server.timeout_max_ms)"
            )
        );
        assert_eq!(error.status(), 400);
    }
}

#[test]
fn binary_numbers_that_are_not_finite_are_refused() {
    let blob = |values: [f32; 3]| {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let json = r#"{"inputs":[{"name":"ecg","shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12}}],"outputs":[{"name":"scores"}]}"#;
    assert!(decode_blobs(&one_input(), json, &blob([1.0, -2.0, f32::MAX])).is_ok());
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let blob = blob([1.0, number, 3.0]);
        let error = decode_blobs(&one_input(), json, &blob).unwrap_err();
        let reason = "\"ecg\": element 1: expected a finite FP32 number, got NaN or infinity";
        assert_eq!(error.to_string(), format!("inputs[0].data: {reason}"));
        let error = decode_as(&one_input(), BodyFraming::Raw, &blob).unwrap_err();
        assert_eq!(error.to_string(), format!("body: {reason}"));
        let missing_values = AppInfo {
            non_finite: true,
            ..one_input()
        };
        assert!(decode_blobs(&missing_values, json, &blob).is_ok());
        assert!(decode_as(&missing_values, BodyFraming::Raw, &blob).is_ok());
    }
}
