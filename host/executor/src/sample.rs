//! Inputs for models that are tried or measured.

use switchyard_models::card::Datatype;
use switchyard_models::{RawData, RawTensor};

use crate::job::{InputTensor, InputType};
use crate::source::InputSpec;

/// Values without a pattern: zeros and denormals can be faster or slower than real data. Integers
/// are small, so that they are valid as indices. `text` is the value of a text input.
pub(crate) fn sample_input(spec: &InputSpec, text: &str) -> InputTensor {
    let values = (0..spec.row_len()).map(|i| (i * 37) % 101);
    match spec.input_type {
        InputType::F32 => InputTensor::F32(values.map(|v| v as f32 / 101.0 - 0.5).collect()),
        InputType::I64 => InputTensor::I64(values.map(|v| (v % 2) as i64).collect()),
        InputType::Bytes => InputTensor::Bytes(values.map(|v| (v % 2) as u8).collect()),
        InputType::Text => InputTensor::Text(text.into()),
        InputType::Raw(datatype) => InputTensor::Raw(RawTensor {
            datatype,
            shape: [&[1], spec.row_shape.as_slice()].concat(),
            data: raw(datatype, values),
        }),
    }
}

/// Zeros and ones of any type; strings of a few letters.
fn raw(datatype: Datatype, values: impl Iterator<Item = usize>) -> RawData {
    let Some(size) = datatype.size() else {
        return RawData::Texts(values.map(|v| format!("text {}", v % 7).into()).collect());
    };
    // Little-endian one: the sign and the exponent of a float, the lowest byte of an integer.
    let one: &[u8] = match datatype {
        Datatype::Fp16 => &[0x00, 0x3c],
        Datatype::Bf16 => &[0x80, 0x3f],
        Datatype::Fp32 => &[0, 0, 0x80, 0x3f],
        Datatype::Fp64 => &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        _ => &[1],
    };
    let mut bytes = Vec::new();
    for value in values {
        let from = bytes.len();
        if value % 2 == 1 {
            bytes.extend_from_slice(one);
        }
        bytes.resize(from + size, 0);
    }
    RawData::Numbers(bytes.into())
}
