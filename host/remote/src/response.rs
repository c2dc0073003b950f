//! From the message of an answer to the output of a batch.

use std::sync::Arc;

use bytes::Bytes;
use switchyard_executor::BatchOutput;
use switchyard_models::card::Datatype;
use switchyard_models::{NamedTensor, RawData, RawTensor};
use switchyard_protocol::grpc::messages::inference::ModelInferResponse;

use crate::model::{RemoteModel, RemoteOutputs, RemoteTensor};

/// The output of a batch of `rows` requests.
///
/// # Errors
/// An output is missing, has another type, number of rows or shape, or has NaN or infinity as an
/// answer.
pub(crate) fn output(
    model: &RemoteModel,
    rows: usize,
    answer: &ModelInferResponse,
) -> Result<BatchOutput, String> {
    match &model.outputs {
        RemoteOutputs::Answer(wanted) => {
            let tensor = tensor(wanted, rows, answer)?;
            let numbers = tensor.numbers().map(|bytes| &bytes[..]).unwrap_or_default();
            let (words, _) = numbers.as_chunks();
            let probabilities: Vec<f32> = words.iter().map(|w| f32::from_le_bytes(*w)).collect();
            // With NaN the most likely class would be arbitrary.
            if let Some(odd) = probabilities.iter().find(|value| !value.is_finite()) {
                let name = &wanted.name;
                return Err(format!(
                    "output `{name}` has {odd}: an input is too large for the model, or no number"
                ));
            }
            Ok(BatchOutput::Answered {
                classes: probabilities.len() / rows.max(1),
                probabilities,
            })
        }
        RemoteOutputs::Tensors(wanted) => {
            let mut by_row: Vec<Vec<NamedTensor>> = vec![Vec::new(); rows];
            for wanted in wanted {
                let parts = tensor(wanted, rows, answer)?.split_rows();
                for (row, part) in by_row.iter_mut().zip(parts) {
                    row.push((Arc::clone(&wanted.local), part));
                }
            }
            Ok(BatchOutput::Tensors(by_row))
        }
    }
}

fn tensor(
    wanted: &RemoteTensor,
    rows: usize,
    answer: &ModelInferResponse,
) -> Result<RawTensor, String> {
    let name = &wanted.name;
    let at = answer.outputs.iter().position(|found| found.name == *name);
    let at = at.ok_or_else(|| format!("output `{name}` is missing"))?;
    let found = &answer.outputs[at];
    if found.datatype != wanted.datatype.name() {
        let ours = wanted.datatype.name();
        let theirs = &found.datatype;
        return Err(format!("output `{name}` has {theirs}, expected {ours}"));
    }
    let sizes = found.shape.iter().map(|&size| usize::try_from(size).ok());
    let shape: Option<Vec<usize>> = sizes.collect();
    let shape = shape.filter(|shape| shape.first() == Some(&rows));
    let wrong = || {
        format!(
            "output `{name}` has shape {:?} for {rows} rows",
            found.shape
        )
    };
    let shape = shape.ok_or_else(wrong)?;
    if !wanted.fits(&found.shape[1..]) {
        let (theirs, ours) = (&found.shape, &wanted.shape);
        return Err(format!(
            "output `{name}`, shape: the server has {theirs:?}, the app's card has {ours:?} for each row"
        ));
    }
    let elements = shape
        .iter()
        .try_fold(1, |all: usize, &size| all.checked_mul(size));
    let bytes = contents(wanted, at, answer)?;
    let data = match wanted.datatype {
        Datatype::Bytes => RawData::Texts(texts(name, bytes)?),
        _ => RawData::Numbers(bytes),
    };
    let count = match &data {
        RawData::Texts(texts) => Some(texts.len()),
        RawData::Numbers(bytes) => {
            let size = wanted.datatype.size().unwrap_or(1);
            bytes.len().is_multiple_of(size).then(|| bytes.len() / size)
        }
    };
    if count.is_none() || count != elements {
        return Err(format!("{}, and other contents", wrong()));
    }
    Ok(RawTensor {
        datatype: wanted.datatype,
        shape,
        data,
    })
}

/// The contents, raw or in fields.
fn contents(
    wanted: &RemoteTensor,
    at: usize,
    answer: &ModelInferResponse,
) -> Result<Bytes, String> {
    if let Some(raw) = answer.raw_output_contents.get(at) {
        return Ok(raw.clone());
    }
    let fields = answer
        .outputs
        .get(at)
        .and_then(|found| found.contents.as_ref());
    let bytes: Option<Vec<u8>> = fields.and_then(|fields| match wanted.datatype {
        Datatype::Fp32 => Some(
            fields
                .fp32_contents
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect(),
        ),
        Datatype::Fp64 => Some(
            fields
                .fp64_contents
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect(),
        ),
        Datatype::Int64 => Some(
            fields
                .int64_contents
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect(),
        ),
        Datatype::Int32 => Some(
            fields
                .int_contents
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect(),
        ),
        _ => None,
    });
    bytes.map(Bytes::from).ok_or_else(|| {
        format!(
            "output `{}` {} has no raw contents",
            wanted.name,
            wanted.datatype.name()
        )
    })
}

/// Elements of BYTES: four bytes of length, then the text.
fn texts(name: &str, mut bytes: Bytes) -> Result<Vec<Arc<str>>, String> {
    let wrong = || format!("output `{name}` ends within a text, or is not UTF-8");
    let mut texts = Vec::new();
    while !bytes.is_empty() {
        let (length, _) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        let length = u32::from_le_bytes(*length) as usize;
        let end = length.checked_add(4).filter(|end| *end <= bytes.len());
        let element = bytes.split_to(end.ok_or_else(wrong)?);
        let text = std::str::from_utf8(&element[4..]).map_err(|_| wrong())?;
        texts.push(Arc::from(text));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use switchyard_models::card::{Task, TensorCard};
    use switchyard_protocol::grpc::messages::inference::model_infer_response::InferOutputTensor;

    use super::*;

    fn model(task: Task, outputs: &[TensorCard]) -> RemoteModel {
        let outputs = outputs.iter().map(|card| RemoteTensor::new(0, card, None));
        RemoteModel {
            name: "app/v".to_owned(),
            model: "far".to_owned(),
            versions: vec![String::new()],
            inputs: Vec::new(),
            outputs: RemoteOutputs::new(task, outputs.collect()),
        }
    }

    fn answer(name: &str, datatype: &str, shape: &[i64], raw: &[u8]) -> ModelInferResponse {
        ModelInferResponse {
            outputs: vec![InferOutputTensor {
                name: name.to_owned(),
                datatype: datatype.to_owned(),
                shape: shape.to_vec(),
                ..InferOutputTensor::default()
            }],
            raw_output_contents: vec![Bytes::copy_from_slice(raw)],
            ..ModelInferResponse::default()
        }
    }

    #[test]
    fn probabilities_are_rows_of_numbers_and_other_shapes_are_refused() {
        let card = TensorCard::fixed("probabilities", Datatype::Fp32, &[2]);
        let model = model(Task::Classify, &[card]);
        let raw = [0.25_f32, 0.75, 1.0, 0.0].map(f32::to_le_bytes).concat();
        let good = answer("probabilities", "FP32", &[2, 2], &raw);
        let given = output(&model, 2, &good).unwrap();
        let rows: Vec<_> = given.rows().collect();
        assert_eq!(rows, [[0.25, 0.75], [1.0, 0.0]]);
        for (wrong, part) in [
            (answer("p", "FP32", &[2, 2], &raw), "is missing"),
            (answer("probabilities", "FP64", &[2, 2], &raw), "FP64"),
            (answer("probabilities", "FP32", &[1, 4], &raw), "[1, 4]"),
            (
                answer("probabilities", "FP32", &[2, 2], &raw[..12]),
                "other contents",
            ),
            (answer("probabilities", "FP32", &[2, -1], &raw), "[2, -1]"),
        ] {
            let error = output(&model, 2, &wrong).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn an_answer_of_nan_or_infinity_is_refused() {
        let card = TensorCard::fixed("probabilities", Datatype::Fp32, &[2]);
        let model = model(Task::Classify, &[card]);
        for odd in [f32::NAN, f32::INFINITY] {
            let raw = [0.25, 0.75, odd, 0.0].map(f32::to_le_bytes).concat();
            let wrong = answer("probabilities", "FP32", &[2, 2], &raw);
            let error = output(&model, 2, &wrong).unwrap_err();
            let expected = format!(
                "output `probabilities` has {odd}: an input is too large for the model, or no number"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn an_answer_of_another_width_than_the_card_is_refused() {
        let card = TensorCard::fixed("probabilities", Datatype::Fp32, &[5]);
        let model = model(Task::Classify, &[card]);
        let raw = [0.25_f32; 10].map(f32::to_le_bytes).concat();
        for shape in [&[1, 4][..], &[1, 6], &[1, 5, 1], &[1]] {
            let numbers = shape.iter().product::<i64>() as usize;
            let wrong = answer("probabilities", "FP32", shape, &raw[..4 * numbers]);
            let error = output(&model, 1, &wrong).unwrap_err();
            let expected = format!(
                "output `probabilities`, shape: the server has {shape:?}, the app's card has [5] for each row"
            );
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn an_answer_of_an_open_width_keeps_its_shape() {
        let mut card = TensorCard::fixed("embedding", Datatype::Fp32, &[1]);
        card.shape = vec![-1];
        let raw = [0.25_f32; 6].map(f32::to_le_bytes).concat();
        let answer = answer("embedding", "FP32", &[2, 3], &raw);
        let given = output(&model(Task::Embed, &[card]), 2, &answer).unwrap();
        let BatchOutput::Tensors(rows) = given else {
            panic!("no tensors");
        };
        assert_eq!(rows[1][0].1.shape, [1, 3]);
    }

    #[test]
    fn tensors_are_split_by_row_under_their_own_names() {
        let card = TensorCard::fixed("words", Datatype::Bytes, &[1]);
        let model = model(Task::Tensors, &[card]);
        let raw = b"\x01\0\0\0a\x02\0\0\0bc";
        let given = output(&model, 2, &answer("words", "BYTES", &[2, 1], raw)).unwrap();
        let BatchOutput::Tensors(rows) = given else {
            panic!("no tensors");
        };
        let second = &rows[1][0];
        assert_eq!((&*second.0, &second.1.shape[..]), ("words", &[1, 1][..]));
        assert_eq!(second.1.data, RawData::Texts(vec![Arc::from("bc")]));
        let cut = output(&model, 2, &answer("words", "BYTES", &[2, 1], &raw[..8]));
        assert!(cut.unwrap_err().contains("ends within a text"));
    }
}
