//! From an answer to the bytes of its body.

mod classification;
pub(crate) mod elements;
mod writer;

use std::borrow::Cow;

use smallvec::SmallVec;

use self::elements::JsonElements;
use self::writer::JsonWriter;
use crate::answer::{InferAnswer, OutputTensor};
use crate::app::AppInfo;
use crate::binary;
use crate::call::WantedOutput;
use crate::error::InferError;
use crate::tensor::Tensor;

/// Bytes reserved for names and parameters.
const ENVELOPE_BYTES: usize = 512;
/// Bytes reserved per element of JSON `data`.
const JSON_ELEMENT_BYTES: usize = 12;

/// An encoded answer.
#[derive(Debug)]
pub struct EncodedAnswer {
    /// The JSON part, then the blobs.
    pub bytes: Vec<u8>,
    /// Length of the JSON part in bytes; `None` if no output is binary.
    pub json_length: Option<usize>,
}

/// The outputs that the client wants, in its order.
struct AnswerOutputs<'a> {
    app: &'a AppInfo,
    wanted: &'a [WantedOutput],
    /// For each of them; `None` if the backend did not give it.
    tensors: SmallVec<[Option<Cow<'a, Tensor>>; 4]>,
}

/// Writes the JSON part, then the blobs of binary outputs.
///
/// # Errors
/// The backend did not give a wanted output, or JSON cannot carry it.
pub fn encode(
    app: &AppInfo,
    id: Option<&str>,
    wanted: &[WantedOutput],
    answer: &InferAnswer,
) -> Result<EncodedAnswer, InferError> {
    let outputs = AnswerOutputs {
        app,
        wanted,
        tensors: wanted
            .iter()
            .map(|wanted| tensor(app, *wanted, &answer.outputs))
            .collect(),
    };
    let mut bytes = Vec::with_capacity(outputs.estimated_len());
    let mut json = JsonWriter(&mut bytes);
    write_envelope(&mut json, app, id, answer);
    outputs.write(&mut json).map_err(InferError::Failed)?;
    json.raw("}");
    let json_length = bytes.len();
    for (wanted, tensor) in outputs.each() {
        if let Some(tensor) = tensor.filter(|_| wanted.binary) {
            binary::encode(&tensor.data, &mut bytes);
        }
    }
    Ok(EncodedAnswer {
        json_length: wanted
            .iter()
            .any(|wanted| wanted.binary)
            .then_some(json_length),
        bytes,
    })
}

/// Writes everything before the outputs.
fn write_envelope(
    json: &mut JsonWriter<'_>,
    app: &AppInfo,
    id: Option<&str>,
    answer: &InferAnswer,
) {
    json.raw("{");
    if let Some(id) = id {
        json.raw(r#""id":"#).text(id).raw(",");
    }
    json.raw(r#""model_name":"#).text(&app.name);
    json.raw(r#","model_version":"#).text(&answer.variant);
    json.raw(r#","parameters":{"variant":"#)
        .text(&answer.variant);
    json.raw(r#","exit":"#).text(&answer.exit);
    json.raw(r#","policy":"#).text(&answer.policy);
    json.raw(r#","batch_size":"#)
        .number(u64::from(answer.batch_size));
    json.raw(r#","queue_us":"#).number(answer.queue_us);
    json.raw(r#","compute_us":"#).number(answer.compute_us);
    json.raw(r#","deadline_met":"#).boolean(answer.deadline_met);
    json.raw(r#","short_circuit":"#)
        .boolean(answer.short_circuit);
    json.raw(r#","window":"#).number(answer.window).raw("}");
}

/// The tensor of an output, or the best classes of its rows.
pub(crate) fn tensor<'a>(
    app: &AppInfo,
    wanted: WantedOutput,
    given: &'a [OutputTensor],
) -> Option<Cow<'a, Tensor>> {
    let given = given.iter().find(|given| given.output == wanted.output)?;
    Some(match wanted.classes {
        0 => Cow::Borrowed(&given.tensor),
        classes => Cow::Owned(classification::best(&given.tensor, classes, &app.classes)?),
    })
}

// === impl AnswerOutputs ===

impl AnswerOutputs<'_> {
    fn each(&self) -> impl Iterator<Item = (WantedOutput, Option<&Tensor>)> {
        let tensors = self.tensors.iter().map(Option::as_deref);
        self.wanted.iter().copied().zip(tensors)
    }

    fn estimated_len(&self) -> usize {
        let tensors = self.each().filter_map(|(wanted, tensor)| {
            let data = &tensor?.data;
            Some(if wanted.binary {
                binary::encoded_len(data)
            } else {
                data.len() * JSON_ELEMENT_BYTES
            })
        });
        ENVELOPE_BYTES + tensors.sum::<usize>()
    }

    /// # Errors
    /// The output that the backend did not give, or that JSON cannot carry.
    fn write(&self, json: &mut JsonWriter<'_>) -> Result<(), String> {
        json.raw(r#","outputs":["#);
        for (index, (wanted, tensor)) in self.each().enumerate() {
            let name = &self.app.outputs[wanted.output.0].name;
            let Tensor { shape, data } =
                tensor.ok_or_else(|| format!("outputs: the backend gave no {name:?}"))?;
            let failed = |error: serde_json::Error| format!("outputs: {error}");
            json.raw(if index == 0 { "{" } else { ",{" });
            json.raw(r#""name":"#).text(name);
            json.raw(r#","datatype":"#).text(data.datatype().name());
            json.raw(r#","shape":"#);
            json.value(shape.as_slice()).map_err(failed)?;
            if wanted.binary {
                let size = binary::encoded_len(data) as u64;
                json.raw(r#","parameters":{"binary_data_size":"#);
                json.number(size).raw("}}");
            } else {
                json.raw(r#","data":"#);
                json.value(&JsonElements { name, data }).map_err(failed)?;
                json.raw("}");
            }
        }
        json.raw("]");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
