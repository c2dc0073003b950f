//! The trial of a model before it serves: it must answer an input.

use candle_core::{DType, Device};
use switchyard_core::ids::RequestId;
use thiserror::Error;

use crate::batch;
use crate::error::ExecuteError;
use crate::graphs;
use crate::job::JobRow;
use crate::sample::sample_input;
use crate::source::LoadedModel;
use crate::stages;

/// The value of a text input.
const TEXT: &str = "a trial of one sentence";

/// Why a model must not serve.
#[derive(Debug, Error)]
pub enum TrialError {
    /// It failed on the input.
    #[error(transparent)]
    Run(#[from] ExecuteError),
    /// An exit failed, or its answer is wrong.
    #[error("exit {exit}: {reason}")]
    Exit {
        /// Position of the exit.
        exit: usize,
        /// candle's reason, or the fault of the answer.
        reason: String,
    },
}

/// Runs one input through every stage and every exit. Answers must be finite and of the
/// model's length.
///
/// # Errors
/// The first failure.
pub fn run(model: &LoadedModel, device: &Device) -> Result<(), TrialError> {
    let mut rows = sample_rows(model, 1);
    if let Some(graph) = model.model.graph() {
        graphs::run(graph, model, &mut rows)?;
        return Ok(());
    }
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

/// Runs a batch of `rows` inputs through a graph; other networks take every batch.
///
/// # Errors
/// The graph cannot tell the answers of its rows apart, or the computation failed.
pub fn run_rows(model: &LoadedModel, rows: u64) -> Result<(), TrialError> {
    if let Some(graph) = model.model.graph() {
        graphs::run(graph, model, &mut sample_rows(model, rows))?;
    }
    Ok(())
}

fn sample_rows(model: &LoadedModel, rows: u64) -> Vec<JobRow> {
    let row = |request| {
        let inputs = model.inputs.iter().map(|spec| sample_input(spec, TEXT));
        JobRow {
            request: RequestId(request),
            input: Some(inputs.collect()),
        }
    };
    (0..rows).map(row).collect()
}
