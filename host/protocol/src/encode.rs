//! From an answer to the bytes of its body.

mod classification;
pub(crate) mod elements;

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{Error, SerializeMap, SerializeSeq, Serializer};
use smallvec::SmallVec;

use self::elements::JsonElements;
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

#[derive(Serialize)]
struct AnswerBody<'a, 't> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    model_name: &'a str,
    model_version: &'a str,
    parameters: AnswerParameters<'a>,
    outputs: &'a AnswerOutputs<'t>,
}

#[derive(Serialize)]
struct AnswerParameters<'a> {
    variant: &'a str,
    exit: &'a str,
    policy: &'a str,
    batch_size: u32,
    queue_us: u64,
    compute_us: u64,
    deadline_met: bool,
    short_circuit: bool,
    window: u64,
}

/// The outputs that the client wants, in its order.
struct AnswerOutputs<'a> {
    app: &'a AppInfo,
    wanted: &'a [WantedOutput],
    /// For each of them; `None` if the backend did not give it.
    tensors: SmallVec<[Option<Cow<'a, Tensor>>; 4]>,
}

struct AnswerOutput<'a> {
    name: &'a str,
    tensor: &'a Tensor,
    binary: bool,
}

#[derive(Serialize)]
struct BlobParameters {
    binary_data_size: usize,
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
    let body = AnswerBody {
        id,
        model_name: &app.name,
        model_version: &answer.variant,
        parameters: AnswerParameters {
            variant: &answer.variant,
            exit: &answer.exit,
            policy: &answer.policy,
            batch_size: answer.batch_size,
            queue_us: answer.queue_us,
            compute_us: answer.compute_us,
            deadline_met: answer.deadline_met,
            short_circuit: answer.short_circuit,
            window: answer.window,
        },
        outputs: &outputs,
    };
    serde_json::to_writer(&mut bytes, &body)
        .map_err(|error| InferError::Failed(format!("outputs: {error}")))?;
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

// === impl AnswerOutputs ===

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
}

impl Serialize for AnswerOutputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.wanted.len()))?;
        for (wanted, tensor) in self.each() {
            let name = &self.app.outputs[wanted.output.0].name;
            let tensor = tensor
                .ok_or_else(|| S::Error::custom(format_args!("the backend gave no {name:?}")))?;
            list.serialize_element(&AnswerOutput {
                name,
                tensor,
                binary: wanted.binary,
            })?;
        }
        list.end()
    }
}

// === impl AnswerOutput ===

impl Serialize for AnswerOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Tensor { shape, data } = self.tensor;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("datatype", data.datatype().name())?;
        map.serialize_entry("shape", shape.as_slice())?;
        if self.binary {
            let binary_data_size = binary::encoded_len(data);
            map.serialize_entry("parameters", &BlobParameters { binary_data_size })?;
        } else {
            let name = self.name;
            map.serialize_entry("data", &JsonElements { name, data })?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
