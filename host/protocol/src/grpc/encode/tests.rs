use bytes::Bytes;
use prost::Message as _;
use smallvec::smallvec;

use super::*;
use crate::answer::OutputTensor;
use crate::app::{OutputIndex, TensorSpec};
use crate::datatype::Datatype;
use crate::grpc::messages::inference::infer_parameter::ParameterChoice;
use crate::grpc::messages::inference::{ModelInferResponse, ModelStreamInferResponse};

fn app() -> AppInfo {
    let spec = |name: &str, datatype| TensorSpec {
        name: name.to_owned(),
        datatype,
        shape: vec![3],
        largest: Vec::new(),
        content: Default::default(),
    };
    AppInfo {
        name: "heart".to_owned(),
        variants: vec!["cnn".to_owned()],
        platform: "test".to_owned(),
        inputs: Vec::new(),
        outputs: vec![spec("y", Datatype::F32), spec("label", Datatype::Bytes)],
        max_batch_rows: 8,
        max_timeout_us: 1,
        non_finite: false,
        accuracy_max: 1.0,
        accuracies: Vec::new(),
        classes: Vec::new(),
    }
}

fn answer(queue_us: u64) -> InferAnswer {
    let output = |index, shape: &[usize], data| OutputTensor {
        output: OutputIndex(index),
        tensor: Tensor {
            shape: shape.iter().copied().collect(),
            data,
        },
    };
    InferAnswer {
        outputs: vec![
            output(1, &[1], TensorData::Bytes(vec![b"yes".to_vec()])),
            output(0, &[1, 3], TensorData::F32(vec![0.25, 0.5, 0.125])),
        ],
        variant: "cnn".into(),
        exit: "final".into(),
        policy: "".into(),
        batch_size: 1,
        queue_us,
        compute_us: 300,
        deadline_met: true,
        short_circuit: false,
        window: 1 << 40,
    }
}

fn wanted() -> SmallVec<[WantedOutput; 4]> {
    let wanted = |output| WantedOutput {
        output: OutputIndex(output),
        binary: true,
        classes: 0,
    };
    smallvec![wanted(0), wanted(1)]
}

/// The message without its frame, whose length must be right.
fn encoded(id: Option<&str>, queue_us: u64, envelope: Envelope) -> Bytes {
    let bytes = encode_infer(&app(), id, &wanted(), &answer(queue_us), envelope).unwrap();
    assert_eq!(bytes.capacity(), bytes.len(), "the length is known before");
    let (prefix, message) = bytes.split_at(PREFIX_BYTES);
    assert_eq!(prefix[0], 0);
    let length = u32::from_be_bytes(prefix[1..].try_into().unwrap());
    assert_eq!(length as usize, message.len());
    Bytes::copy_from_slice(message)
}

fn check(response: &ModelInferResponse, queue_us: i64) {
    assert_eq!(
        (&*response.model_name, &*response.model_version),
        ("heart", "cnn")
    );
    let outputs = response
        .outputs
        .iter()
        .map(|output| (&*output.name, &*output.datatype, &*output.shape));
    let expected: [(_, _, &[i64]); 2] = [("y", "FP32", &[1, 3]), ("label", "BYTES", &[1])];
    assert_eq!(outputs.collect::<Vec<_>>(), expected);
    let y: Vec<u8> = [0.25_f32, 0.5, 0.125]
        .into_iter()
        .flat_map(f32::to_le_bytes)
        .collect();
    assert_eq!(response.raw_output_contents, [&y[..], b"\x03\0\0\0yes"]);
    let parameter = |name: &str| response.parameters[name].parameter_choice.clone().unwrap();
    let text = |text: &str| ParameterChoice::StringParam(text.to_owned());
    assert_eq!(parameter("variant"), text("cnn"));
    assert_eq!(parameter("policy"), text(""));
    assert_eq!(parameter("queue_us"), ParameterChoice::Int64Param(queue_us));
    assert_eq!(parameter("window"), ParameterChoice::Int64Param(1 << 40));
    assert_eq!(parameter("deadline_met"), ParameterChoice::BoolParam(true));
    assert_eq!(
        parameter("short_circuit"),
        ParameterChoice::BoolParam(false)
    );
}

#[test]
fn the_generated_types_read_a_written_answer() {
    for queue_us in [0, 127, 128, 1 << 33] {
        let message = encoded(Some("r-1"), queue_us, Envelope::Call);
        let response = ModelInferResponse::decode(message).unwrap();
        assert_eq!(response.id, "r-1");
        assert_eq!(response.parameters.len(), 9);
        check(&response, queue_us as i64);
    }
}

#[test]
fn an_answer_in_a_stream_is_the_last_one_of_its_request() {
    let message = encoded(None, 5, Envelope::Stream);
    let streamed = ModelStreamInferResponse::decode(message).unwrap();
    assert_eq!(streamed.error_message, "");
    let response = streamed.infer_response.unwrap();
    let last = &response.parameters["triton_final_response"];
    assert_eq!(
        last.parameter_choice,
        Some(ParameterChoice::BoolParam(true))
    );
    check(&response, 5);
}

#[test]
fn an_output_that_the_backend_did_not_give_is_a_failure() {
    let mut given = answer(1);
    given.outputs.pop();
    let error = encode_infer(&app(), None, &wanted(), &given, Envelope::Call).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed: outputs: the backend gave no \"y\""
    );
}
