//! What a model must do before it takes another one's place: answer an input.

use candle_core::{DType, Device};
use switchyard_core::ids::RequestId;
use thiserror::Error;

use crate::batch;
use crate::error::ExecuteError;
use crate::job::{InputTensor, InputType, Row};
use crate::source::{InputSpec, LoadedModel};
use crate::stages;

/// Why a model is not fit to serve.
#[derive(Debug, Error)]
pub enum TrialError {
    /// It failed on the input.
    #[error(transparent)]
    Run(#[from] ExecuteError),
    /// An exit cannot be computed.
    #[error("exit {exit}: {reason}")]
    Exit {
        /// Which one.
        exit: usize,
        /// What candle said, or what is wrong with its answer.
        reason: String,
    },
}

/// Runs one input through every stage and every exit. Answers must be finite and of the
/// model's length.
///
/// # Errors
/// The first thing that goes wrong.
pub fn run(model: &LoadedModel, device: &Device) -> Result<(), TrialError> {
    let mut rows = [Row {
        request: RequestId(0),
        input: Some(model.inputs.iter().map(sample).collect()),
    }];
    let mut x = batch::assemble(&mut rows, model, device)?;
    let mut stage = 0;
    for (exit, &after) in model.model.exits().iter().enumerate() {
        x = stages::run(model, stage..after, x)?;
        stage = after;
        let refuse = |reason: String| TrialError::Exit { exit, reason };
        let answer = model.model.head(exit, &x);
        let answer = answer.and_then(|answer| answer.to_dtype(DType::F32)?.to_vec2::<f32>());
        let answer = answer.map_err(|error| refuse(error.to_string()))?;
        let wanted = model.model.answer_len();
        match answer.as_slice() {
            [row] if row.len() != wanted => {
                let found = row.len();
                return Err(refuse(format!("{found} numbers, not {wanted}")));
            }
            [row] => {
                if let Some(odd) = row.iter().find(|value| !value.is_finite()) {
                    return Err(refuse(format!("answers {odd}")));
                }
            }
            rows => return Err(refuse(format!("{} answers to one input", rows.len()))),
        }
    }
    Ok(())
}

/// Small numbers without pattern; as indices they are valid in any vocabulary.
fn sample(spec: &InputSpec) -> InputTensor {
    let values = (0..spec.row_len()).map(|i| (i * 37) % 101);
    match spec.input_type {
        InputType::F32 => InputTensor::F32(values.map(|v| v as f32 / 101.0 - 0.5).collect()),
        InputType::I64 => InputTensor::I64(values.map(|v| (v % 2) as i64).collect()),
        InputType::Text => InputTensor::Text("a trial of one sentence".to_owned()),
        InputType::Bytes => InputTensor::Bytes(values.map(|v| (v % 2) as u8).collect()),
    }
}
