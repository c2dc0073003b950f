//! Running stages.

use std::ops::Range;

use candle_core::Tensor;

use crate::error::ExecuteError;
use crate::graphs;
use crate::job::{BatchOutput, Job};
use crate::source::LoadedModel;

/// Checks a job's stages, exit and rows against its model.
pub(crate) fn check(job: &Job, model: &LoadedModel) -> Result<(), ExecuteError> {
    let stages = model.model.stages();
    let (from, to) = (job.from_stage as usize, job.to_stage as usize);
    if from >= to || to > stages {
        let reason = format!("stages {from} to {to} cannot be run, it has {stages}");
        return Err(ExecuteError::job(&model.name, reason));
    }
    if let Some(exit) = job.exit {
        let exits = model.model.exits();
        match exits.get(exit.index()) {
            Some(&after) if after == to => {}
            Some(after) => {
                let reason = format!("exit {} follows stage {after}, not stage {to}", exit.0);
                return Err(ExecuteError::job(&model.name, reason));
            }
            None => {
                let reason = format!("exit {} does not exist, it has {}", exit.0, exits.len());
                return Err(ExecuteError::job(&model.name, reason));
            }
        }
    }
    if job.rows.is_empty() {
        return Err(ExecuteError::job(&model.name, "a batch without requests"));
    }
    Ok(())
}

/// Runs the stages of `range` on a batch, `[rows, ..]`.
pub(crate) fn run(
    model: &LoadedModel,
    range: Range<usize>,
    batch: Tensor,
) -> Result<Tensor, ExecuteError> {
    model
        .model
        .run_stages(range.clone(), &batch)
        .map_err(|error| {
            let stages = match range.len() {
                1 => format!("stage {}", range.start),
                _ => format!("stages {} to {}", range.start, range.end),
            };
            ExecuteError::compute(&model.name, stages, &error)
        })
}

/// Runs the head of an exit and copies its answers to the host.
pub(crate) fn answer(
    model: &LoadedModel,
    exit: usize,
    x: &Tensor,
    rows: usize,
) -> Result<BatchOutput, ExecuteError> {
    let failed = |error: candle_core::Error| {
        ExecuteError::compute(&model.name, format!("exit {exit}"), &error)
    };
    let probabilities = model.model.head(exit, x).map_err(failed)?;
    let (found, classes) = probabilities.dims2().map_err(failed)?;
    if found != rows {
        let reason = format!("exit {exit} gave {found} answers to {rows} requests");
        return Err(ExecuteError::job(&model.name, reason));
    }
    let probabilities: Vec<f32> = probabilities
        .flatten_all()
        .and_then(|flat| flat.to_vec1())
        .map_err(failed)?;
    Ok(BatchOutput::Answered {
        classes,
        probabilities: graphs::finite(model, probabilities)?,
    })
}
