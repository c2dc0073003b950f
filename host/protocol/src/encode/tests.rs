use std::sync::Arc;

use super::*;
use crate::app::{OutputIndex, TensorSpec};
use crate::datatype::Datatype;
use crate::tensor::{Shape, TensorData};

fn app() -> AppInfo {
    let spec = |name: &str, datatype| TensorSpec {
        name: name.to_owned(),
        datatype,
        shape: vec![2],
        largest: Vec::new(),
        content: Default::default(),
    };
    AppInfo {
        name: "heart".to_owned(),
        variants: vec!["cnn".to_owned()],
        platform: "test".to_owned(),
        inputs: Vec::new(),
        outputs: vec![
            spec("scores", Datatype::F32),
            spec("label", Datatype::Bytes),
        ],
        max_batch_rows: 4,
        max_timeout_us: 60_000_000,
        non_finite: false,
        accuracy_max: 0.95,
        accuracies: vec![Some(0.9)],
        classes: Vec::new(),
    }
}

fn answer(label: &[u8]) -> InferAnswer {
    let output = |index, data| OutputTensor {
        output: OutputIndex(index),
        tensor: Tensor {
            shape: Shape::from_slice(&[1, 2]),
            data,
        },
    };
    InferAnswer {
        outputs: vec![
            output(0, TensorData::F32(vec![0.25, f32::NAN])),
            output(1, TensorData::Bytes(vec![label.to_vec(), Vec::new()])),
        ],
        variant: Arc::from("cnn"),
        exit: Arc::from("final"),
        policy: Arc::from("fcfs@1"),
        batch_size: 3,
        queue_us: 40,
        compute_us: 900,
        deadline_met: true,
        short_circuit: false,
        window: 12,
    }
}

#[test]
fn a_json_answer_reads_like_this() {
    let wanted = [
        WantedOutput {
            output: OutputIndex(0),
            binary: false,
            classes: 0,
        },
        WantedOutput {
            output: OutputIndex(1),
            binary: false,
            classes: 0,
        },
    ];
    let encoded = encode(&app(), Some("r\"1"), &wanted, &answer("é".as_bytes())).unwrap();
    assert_eq!(encoded.json_length, None);
    insta::assert_snapshot!(String::from_utf8(encoded.bytes).unwrap(), @r#"{"id":"r\"1","model_name":"heart","model_version":"cnn","parameters":{"variant":"cnn","exit":"final","policy":"fcfs@1","batch_size":3,"queue_us":40,"compute_us":900,"deadline_met":true,"short_circuit":false,"window":12},"outputs":[{"name":"scores","datatype":"FP32","shape":[1,2],"data":[0.25,null]},{"name":"label","datatype":"BYTES","shape":[1,2],"data":["é",""]}]}"#);
}

#[test]
fn blobs_follow_the_json_in_the_order_asked_for() {
    let wanted = [
        WantedOutput {
            output: OutputIndex(1),
            binary: true,
            classes: 0,
        },
        WantedOutput {
            output: OutputIndex(0),
            binary: true,
            classes: 0,
        },
    ];
    let encoded = encode(&app(), None, &wanted, &answer(b"\xff")).unwrap();
    let (json, blobs) = encoded.bytes.split_at(encoded.json_length.unwrap());
    let json = str::from_utf8(json).unwrap();
    assert!(json.contains(
        r#"{"name":"label","datatype":"BYTES","shape":[1,2],"parameters":{"binary_data_size":9}}"#
    ));
    let mut expected = vec![1, 0, 0, 0, 0xff, 0, 0, 0, 0];
    expected.extend_from_slice(&0.25_f32.to_le_bytes());
    expected.extend_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(blobs, expected);
}

#[test]
fn an_output_without_json_form_is_an_error() {
    let wanted = [WantedOutput {
        output: OutputIndex(1),
        binary: false,
        classes: 0,
    }];
    let error = encode(&app(), None, &wanted, &answer(b"\xff")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed: outputs: \"label\" is not UTF-8; set its parameters.binary_data to true"
    );
}

#[test]
fn an_output_the_backend_forgot_is_an_error() {
    let mut answer = answer(b"");
    answer.outputs.remove(0);
    let wanted = [WantedOutput {
        output: OutputIndex(0),
        binary: true,
        classes: 0,
    }];
    let error = encode(&app(), None, &wanted, &answer).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed: outputs: the backend gave no \"scores\""
    );
}
