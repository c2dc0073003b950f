//! The answers of every exit of a model, for measuring its quality without a worker.

use candle_core::Device;

use crate::error::ExecuteError;
use crate::job::{BatchOutput, JobRow, RowTensors};
use crate::source::LoadedModel;
use crate::{batch, graphs, stages};

/// The answers of each exit to a batch, shallowest first. Runs on the CPU.
///
/// # Errors
/// An input does not fit the model, or the computation failed.
pub fn run(model: &LoadedModel, batch: Vec<RowTensors>) -> Result<Vec<BatchOutput>, ExecuteError> {
    let rows = (0..).zip(batch).map(|(request, input)| JobRow {
        request: switchyard_core::ids::RequestId(request),
        input: Some(input),
    });
    let mut rows: Vec<JobRow> = rows.collect();
    if let Some(graph) = model.model.graph() {
        return Ok(vec![graphs::run(graph, model, &mut rows)?]);
    }
    let count = rows.len();
    let mut x = batch::assemble(&mut rows, model, &Device::Cpu)?;
    let mut stage = 0;
    let mut answers = Vec::new();
    for (exit, &after) in model.model.exits().iter().enumerate() {
        x = stages::run(model, stage..after, x)?;
        stage = after;
        answers.push(stages::answer(model, exit, &x, count)?);
    }
    Ok(answers)
}
