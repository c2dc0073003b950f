//! From a batch to the message of an inference. The numbers of a row stay where they are.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use switchyard_executor::{ExecuteError, InputTensor, Job};
use switchyard_models::{RawData, RawTensor};
use switchyard_protocol::StageCall;
use switchyard_protocol::grpc::messages::inference::ModelInferRequest;
use switchyard_protocol::grpc::messages::inference::model_infer_request::{
    InferInputTensor, InferRequestedOutputTensor,
};
use switchyard_protocol::grpc::stage_parameters;

use crate::body::Parts;
use crate::model::{RemoteModel, RemoteTensor};

/// The field `raw_input_contents` of a `ModelInferRequest`.
const RAW_CONTENTS: u32 = 7;

/// Pieces of fewer bytes are joined: by default a frame of HTTP/2 has as many.
const JOINED_BELOW: usize = 16 << 10;

/// The message of a batch, or of some stages of it, without its frame. Takes the inputs out of the job.
///
/// # Errors
/// A row lacks an input, or the rows of an input have different shapes.
pub(crate) fn infer(
    model: &RemoteModel,
    version: &str,
    stages: Option<&StageCall>,
    job: &mut Job,
) -> Result<Parts, ExecuteError> {
    let refused = |input: &RemoteTensor, row: usize, reason: &str| ExecuteError::Input {
        request: job.rows.get(row).map(|row| row.request).unwrap_or_default(),
        input: input.local.to_string(),
        reason: reason.to_owned(),
    };
    let mut inputs = Vec::with_capacity(model.inputs.len());
    let mut contents: Vec<Vec<Bytes>> = Vec::with_capacity(model.inputs.len());
    let takes_inputs = stages.is_none_or(StageCall::takes_inputs);
    for wanted in model.inputs.iter().filter(|_| takes_inputs) {
        let mut pieces = Vec::with_capacity(job.rows.len());
        let mut shape: Option<Vec<i64>> = None;
        for (r, row) in job.rows.iter().enumerate() {
            let tensor = row.input.as_ref().and_then(|inputs| inputs.get(wanted.at));
            let tensor = tensor.ok_or_else(|| refused(wanted, r, "is missing"))?;
            let of_row = row_shape(tensor, wanted);
            if shape.as_ref().is_some_and(|shape| *shape != of_row) {
                return Err(refused(wanted, r, "has another shape than the rows before"));
            }
            shape = Some(of_row);
            push(tensor, &mut pieces);
        }
        let mut whole = vec![job.rows.len() as i64];
        whole.extend(shape.unwrap_or_default());
        inputs.push(InferInputTensor {
            name: wanted.name.clone(),
            datatype: wanted.datatype.name().to_owned(),
            shape: whole,
            ..InferInputTensor::default()
        });
        contents.push(joined(pieces));
    }
    let gives_outputs = stages.is_none_or(StageCall::gives_outputs);
    let outputs = model.outputs.all().iter().filter(|_| gives_outputs);
    let head = ModelInferRequest {
        model_name: model.model.clone(),
        model_version: version.to_owned(),
        parameters: stages.map(stage_parameters).unwrap_or_default(),
        inputs,
        outputs: outputs
            .map(|output| InferRequestedOutputTensor {
                name: output.name.clone(),
                ..InferRequestedOutputTensor::default()
            })
            .collect(),
        ..ModelInferRequest::default()
    };
    let mut parts = Parts::default();
    parts.push(head.encode_to_vec().into());
    for pieces in contents {
        let mut key = BytesMut::new();
        encode_key(RAW_CONTENTS, WireType::LengthDelimited, &mut key);
        encode_varint(
            pieces.iter().map(Bytes::len).sum::<usize>() as u64,
            &mut key,
        );
        parts.push(key.freeze());
        pieces.into_iter().for_each(|piece| parts.push(piece));
    }
    for row in &mut job.rows {
        row.input = None;
    }
    Ok(parts)
}

/// The message that lets the server forget rows.
pub(crate) fn release(model: &RemoteModel, call: &StageCall) -> Parts {
    let head = ModelInferRequest {
        model_name: model.model.clone(),
        parameters: stage_parameters(call),
        ..ModelInferRequest::default()
    };
    let mut parts = Parts::default();
    parts.push(head.encode_to_vec().into());
    parts
}

/// Joins small pieces: a frame of its own costs more than the copy.
fn joined(pieces: Vec<Bytes>) -> Vec<Bytes> {
    if pieces.len() < 2 {
        return pieces;
    }
    let mut parts = Vec::new();
    let mut small = BytesMut::new();
    for piece in pieces {
        if piece.len() < JOINED_BELOW {
            small.extend_from_slice(&piece);
            continue;
        }
        if !small.is_empty() {
            parts.push(small.split().freeze());
        }
        parts.push(piece);
    }
    if !small.is_empty() {
        parts.push(small.freeze());
    }
    parts
}

/// The shape of one row.
fn row_shape(tensor: &InputTensor, wanted: &RemoteTensor) -> Vec<i64> {
    match tensor {
        InputTensor::Raw(RawTensor { shape, .. }) => {
            let row = shape.iter().skip(1);
            row.map(|&size| i64::try_from(size).unwrap_or(i64::MAX))
                .collect()
        }
        _ => wanted.shape.clone(),
    }
}

fn push(tensor: &InputTensor, pieces: &mut Vec<Bytes>) {
    match tensor {
        InputTensor::F32(values) => pieces.push(values.to_wire()),
        InputTensor::I64(values) => pieces.push(values.to_wire()),
        InputTensor::Bytes(values) => pieces.push(values.to_wire()),
        InputTensor::Text(text) => pieces.push(text_element(&text.text)),
        InputTensor::Raw(tensor) => match &tensor.data {
            RawData::Numbers(bytes) => pieces.push(bytes.clone()),
            RawData::Texts(texts) => pieces.extend(texts.iter().map(|text| text_element(text))),
        },
    }
}

/// An element of BYTES: four bytes of length, then the text.
fn text_element(text: &str) -> Bytes {
    let mut element = BytesMut::with_capacity(4 + text.len());
    element.put_u32_le(u32::try_from(text.len()).unwrap_or(u32::MAX));
    element.put_slice(text.as_bytes());
    element.freeze()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
    use switchyard_core::residents::Soon;
    use switchyard_executor::JobRow;
    use switchyard_models::card::{Datatype, Task, TensorCard};

    use super::*;
    use crate::model::RemoteOutputs;

    #[test]
    fn small_pieces_are_joined_and_large_ones_are_not_copied() {
        let large = Bytes::from(vec![7; JOINED_BELOW]);
        let pieces = [b"a", b"b"].map(|bytes| Bytes::from_static(bytes));
        let [a, b] = pieces;
        let parts = joined(vec![a.clone(), b.clone(), large.clone(), a, b]);
        assert_eq!(parts.len(), 3);
        assert_eq!((&*parts[0], &*parts[2]), (&b"ab"[..], &b"ab"[..]));
        assert_eq!(parts[1].as_ptr(), large.as_ptr());
    }

    #[tokio::test]
    async fn the_rows_of_a_batch_are_one_tensor() {
        let card = |name, datatype, shape| TensorCard::fixed(name, datatype, shape);
        let model = RemoteModel {
            name: "app/v".to_owned(),
            model: "far".to_owned(),
            versions: vec!["2".to_owned()],
            inputs: vec![
                RemoteTensor::new(
                    0,
                    &card("beat", Datatype::Fp32, &[2]),
                    Some(&"x".to_owned()),
                ),
                RemoteTensor::new(1, &card("note", Datatype::Bytes, &[1]), None),
            ],
            outputs: RemoteOutputs::new(
                Task::Embed,
                vec![RemoteTensor::new(
                    0,
                    &card("embedding", Datatype::Fp32, &[3]),
                    None,
                )],
            ),
        };
        let row = |id: u64, text: &str| JobRow {
            request: RequestId(id),
            input: Some(
                [
                    InputTensor::F32(vec![id as f32, 0.5].into()),
                    InputTensor::Text(text.into()),
                ]
                .into_iter()
                .collect(),
            ),
        };
        let mut job = Job {
            batch: BatchId(1),
            app: AppId(0),
            variant: VariantId(0),
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            rows: vec![row(1, "Zürich"), row(2, "")],
            soon: Soon::new(),
            until: None,
        };
        let parts = infer(&model, "2", None, &mut job).unwrap();
        let length = parts.len();
        let bytes = parts.collect().await.unwrap().to_bytes();
        assert_eq!(bytes.len() as u64, length);
        let sent = ModelInferRequest::decode(bytes).unwrap();
        assert_eq!((&*sent.model_name, &*sent.model_version), ("far", "2"));
        let shapes: Vec<_> = sent
            .inputs
            .iter()
            .map(|i| (&*i.name, &i.shape[..]))
            .collect();
        assert_eq!(shapes, [("x", &[2, 2][..]), ("note", &[2, 1])]);
        assert_eq!(sent.outputs[0].name, "embedding");
        let floats = [1.0_f32, 0.5, 2.0, 0.5].map(f32::to_le_bytes).concat();
        assert_eq!(sent.raw_input_contents[0], floats);
        let texts = ["\u{7}\0\0\0Zürich", "\0\0\0\0"].concat();
        assert_eq!(sent.raw_input_contents[1], texts);
        assert!(job.rows.iter().all(|row| row.input.is_none()));

        job.rows = vec![row(3, "a")];
        job.rows[0].input.as_mut().unwrap().pop();
        let error = infer(&model, "2", None, &mut job).unwrap_err().to_string();
        assert_eq!(error, "request 3: input `note`: is missing");
    }
}
