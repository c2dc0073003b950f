//! Inputs for models that are tried or measured.

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
    }
}
