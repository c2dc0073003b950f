//! From an answer to the bytes of its message.
//!
//! The generated types would copy each tensor twice and allocate each name. Here the message is walked
//! twice: once for its length, which stands before its bytes, and once into one buffer.

use std::borrow::Cow;

use prost::encoding::{WireType, encode_varint, encoded_len_varint};
use smallvec::SmallVec;

use super::frame::{self, PREFIX_BYTES};
use crate::answer::InferAnswer;
use crate::app::AppInfo;
use crate::binary;
use crate::call::WantedOutput;
use crate::encode::tensor;
use crate::error::InferError;
use crate::tensor::{Tensor, TensorData};

/// The message that an answer is put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// A `ModelInferResponse`.
    Call,
    /// A `ModelStreamInferResponse`.
    Stream,
}

/// Takes the parts of a message.
trait Sink {
    fn varint(&mut self, value: u64);
    fn bytes(&mut self, bytes: &[u8]);
    fn elements(&mut self, data: &TensorData);
}

/// Only adds lengths up.
struct Length(usize);

/// The parts of an answer.
struct Message<'a> {
    app: &'a AppInfo,
    id: &'a str,
    answer: &'a InferAnswer,
    tensors: &'a [(&'a str, Cow<'a, Tensor>)],
    envelope: Envelope,
}

enum Parameter<'a> {
    Text(&'a str),
    Whole(u64),
    Flag(bool),
}

/// Writes an answer with its frame.
///
/// # Errors
/// The backend did not give a wanted output, or the answer is too long for a message.
pub fn encode_infer(
    app: &AppInfo,
    id: Option<&str>,
    wanted: &[WantedOutput],
    answer: &InferAnswer,
    envelope: Envelope,
) -> Result<Vec<u8>, InferError> {
    let tensors = wanted.iter().map(|wanted| {
        let name = app.outputs[wanted.output.0].name.as_str();
        let given = tensor(app, *wanted, &answer.outputs)
            .ok_or_else(|| InferError::Failed(format!("outputs: the backend gave no {name:?}")))?;
        Ok((name, given))
    });
    let tensors = tensors.collect::<Result<SmallVec<[_; 4]>, InferError>>()?;
    let message = Message {
        app,
        id: id.unwrap_or_default(),
        answer,
        tensors: &tensors,
        envelope,
    };
    let inner = length_of(|sink| message.write(sink));
    let length = match envelope {
        Envelope::Call => inner,
        Envelope::Stream => inner + 1 + encoded_len_varint(inner as u64),
    };
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + length);
    frame::begin(&mut bytes, length).ok_or_else(|| {
        InferError::Failed(format!(
            "outputs: {length} bytes, a gRPC message has at most 4 GiB"
        ))
    })?;
    if envelope == Envelope::Stream {
        head(&mut bytes, 2, inner);
    }
    message.write(&mut bytes);
    Ok(bytes)
}

// === impl Message ===

impl Message<'_> {
    fn write(&self, sink: &mut dyn Sink) {
        text(sink, 1, &self.app.name);
        text(sink, 2, &self.answer.variant);
        text(sink, 3, self.id);
        self.parameters(sink);
        for (name, tensor) in self.tensors {
            message(sink, 5, |sink| {
                text(sink, 1, name);
                text(sink, 2, tensor.data.datatype().name());
                message(sink, 3, |sink| {
                    for &dimension in &tensor.shape {
                        sink.varint(dimension as u64);
                    }
                });
            });
        }
        for (_, tensor) in self.tensors {
            head(sink, 6, binary::encoded_len(&tensor.data));
            sink.elements(&tensor.data);
        }
    }

    /// The same as in JSON.
    fn parameters(&self, sink: &mut dyn Sink) {
        let answer = self.answer;
        parameter(sink, "variant", &Parameter::Text(&answer.variant));
        parameter(sink, "exit", &Parameter::Text(&answer.exit));
        parameter(sink, "policy", &Parameter::Text(&answer.policy));
        parameter(
            sink,
            "batch_size",
            &Parameter::Whole(answer.batch_size.into()),
        );
        parameter(sink, "queue_us", &Parameter::Whole(answer.queue_us));
        parameter(sink, "compute_us", &Parameter::Whole(answer.compute_us));
        parameter(sink, "deadline_met", &Parameter::Flag(answer.deadline_met));
        parameter(
            sink,
            "short_circuit",
            &Parameter::Flag(answer.short_circuit),
        );
        parameter(sink, "window", &Parameter::Whole(answer.window));
        if self.envelope == Envelope::Stream {
            // Every request has one answer.
            parameter(sink, "triton_final_response", &Parameter::Flag(true));
        }
    }
}

/// An entry of the map: a key and an `InferParameter`.
fn parameter(sink: &mut dyn Sink, name: &str, value: &Parameter<'_>) {
    message(sink, 4, |sink| {
        text(sink, 1, name);
        message(sink, 2, |sink| match value {
            // Members of a `oneof` are written also if they are empty.
            Parameter::Text(value) => {
                head(sink, 3, value.len());
                sink.bytes(value.as_bytes());
            }
            Parameter::Whole(value) => {
                key(sink, 2, WireType::Varint);
                // int64, as Triton's: every number here is below 2^63.
                sink.varint(*value);
            }
            Parameter::Flag(value) => {
                key(sink, 1, WireType::Varint);
                sink.varint(u64::from(*value));
            }
        });
    });
}

/// A string; an empty one is left out.
fn text(sink: &mut dyn Sink, field: u32, text: &str) {
    if !text.is_empty() {
        head(sink, field, text.len());
        sink.bytes(text.as_bytes());
    }
}

/// A message within a message, or a packed list.
fn message(sink: &mut dyn Sink, field: u32, write: impl Fn(&mut dyn Sink)) {
    head(sink, field, length_of(&write));
    write(sink);
}

/// Key and length of a field.
fn head(sink: &mut dyn Sink, field: u32, length: usize) {
    key(sink, field, WireType::LengthDelimited);
    sink.varint(length as u64);
}

fn key(sink: &mut dyn Sink, field: u32, wire_type: WireType) {
    sink.varint(u64::from((field << 3) | wire_type as u32));
}

fn length_of(write: impl Fn(&mut dyn Sink)) -> usize {
    let mut length = Length(0);
    write(&mut length);
    length.0
}

// === impl Sink ===

impl Sink for Length {
    fn varint(&mut self, value: u64) {
        self.0 += encoded_len_varint(value);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn elements(&mut self, data: &TensorData) {
        self.0 += binary::encoded_len(data);
    }
}

impl Sink for Vec<u8> {
    fn varint(&mut self, value: u64) {
        encode_varint(value, self);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn elements(&mut self, data: &TensorData) {
        binary::encode(data, self);
    }
}

#[cfg(test)]
mod tests;
