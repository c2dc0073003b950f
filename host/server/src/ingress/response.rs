//! From an answer to the bytes of a response.

use serde::Serialize;
use serde::ser::{Error, SerializeMap, SerializeSeq, Serializer};

use super::backend::{AppInfo, InferAnswer, InferError, OutputTensor};
use super::binary;
use super::decode::Wanted;
use super::tensor::{Tensor, TensorData};

/// Bytes reserved for names and parameters, and per element of JSON `data`.
const ENVELOPE_BYTES: usize = 512;
const JSON_ELEMENT_BYTES: usize = 12;

/// An encoded answer.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// Where the blobs begin; none when all of it is JSON.
    pub(super) json_length: Option<usize>,
}

/// Writes the JSON part, then the blobs of binary outputs.
///
/// # Errors
/// An output that the backend did not give, or that JSON cannot carry.
pub(super) fn encode(
    app: &AppInfo,
    id: Option<&str>,
    wanted: &[Wanted],
    answer: &InferAnswer,
) -> Result<Encoded, InferError> {
    let outputs = Outputs {
        app,
        wanted,
        given: &answer.outputs,
    };
    let mut bytes = Vec::with_capacity(outputs.estimated_len());
    let body = Body {
        id,
        model_name: &app.name,
        model_version: &answer.variant,
        parameters: Parameters {
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
    for wanted in wanted.iter().filter(|wanted| wanted.binary) {
        if let Some(tensor) = outputs.tensor(*wanted) {
            binary::encode(&tensor.data, &mut bytes);
        }
    }
    Ok(Encoded {
        json_length: wanted
            .iter()
            .any(|wanted| wanted.binary)
            .then_some(json_length),
        bytes,
    })
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    model_name: &'a str,
    model_version: &'a str,
    parameters: Parameters<'a>,
    outputs: &'a Outputs<'a>,
}

#[derive(Serialize)]
struct Parameters<'a> {
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

/// The outputs asked for, in the client's order.
struct Outputs<'a> {
    app: &'a AppInfo,
    wanted: &'a [Wanted],
    given: &'a [OutputTensor],
}

impl Outputs<'_> {
    fn tensor(&self, wanted: Wanted) -> Option<&Tensor> {
        let given = self.given.iter().find(|given| given.spec == wanted.spec)?;
        Some(&given.tensor)
    }

    fn estimated_len(&self) -> usize {
        let tensors = self.wanted.iter().filter_map(|wanted| {
            let data = &self.tensor(*wanted)?.data;
            Some(if wanted.binary {
                binary::encoded_len(data)
            } else {
                data.len() * JSON_ELEMENT_BYTES
            })
        });
        ENVELOPE_BYTES + tensors.sum::<usize>()
    }
}

impl Serialize for Outputs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.wanted.len()))?;
        for wanted in self.wanted {
            let name = &self.app.outputs[wanted.spec].name;
            let tensor = self
                .tensor(*wanted)
                .ok_or_else(|| S::Error::custom(format_args!("the backend gave no {name:?}")))?;
            list.serialize_element(&Output {
                name,
                tensor,
                binary: wanted.binary,
            })?;
        }
        list.end()
    }
}

struct Output<'a> {
    name: &'a str,
    tensor: &'a Tensor,
    binary: bool,
}

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Tensor { shape, data } = self.tensor;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("datatype", data.datatype().name())?;
        map.serialize_entry("shape", shape.as_slice())?;
        if self.binary {
            let binary_data_size = binary::encoded_len(data);
            map.serialize_entry("parameters", &BlobSize { binary_data_size })?;
        } else {
            map.serialize_entry(
                "data",
                &JsonData {
                    name: self.name,
                    data,
                },
            )?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct BlobSize {
    binary_data_size: usize,
}

/// Flat, row-major. A float that is not finite becomes `null`.
pub(super) struct JsonData<'a> {
    pub(super) name: &'a str,
    pub(super) data: &'a TensorData,
}

impl Serialize for JsonData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.data {
            TensorData::Bool(values) => values.serialize(serializer),
            TensorData::U8(values) => values.serialize(serializer),
            TensorData::U16(values) => values.serialize(serializer),
            TensorData::U32(values) => values.serialize(serializer),
            TensorData::U64(values) => values.serialize(serializer),
            TensorData::I8(values) => values.serialize(serializer),
            TensorData::I16(values) => values.serialize(serializer),
            TensorData::I32(values) => values.serialize(serializer),
            TensorData::I64(values) => values.serialize(serializer),
            TensorData::F32(values) => values.serialize(serializer),
            TensorData::F64(values) => values.serialize(serializer),
            TensorData::F16(_) | TensorData::Bf16(_) => Err(S::Error::custom(format_args!(
                "{:?} has no JSON form; ask for it with parameters.binary_data",
                self.name
            ))),
            TensorData::Wire(wire) => {
                let data = &wire.decode().map_err(S::Error::custom)?;
                let name = self.name;
                JsonData { name, data }.serialize(serializer)
            }
            TensorData::Bytes(elements) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for element in elements {
                    let text = str::from_utf8(element).map_err(|_| {
                        S::Error::custom(format_args!(
                            "{:?} is not UTF-8; ask for it with parameters.binary_data",
                            self.name
                        ))
                    })?;
                    list.serialize_element(text)?;
                }
                list.end()
            }
        }
    }
}

#[cfg(test)]
mod tests;
