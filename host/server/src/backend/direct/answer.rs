//! From the output of a batch to the answer of its call.

use std::sync::Arc;
use std::time::Instant;

use switchyard_core::time::Micros;
use switchyard_executor::BatchOutput;

use super::app::{DirectApp, DirectVersion, NO_POLICY};
use crate::backend::end;
use crate::driver::RowAnswer;
use crate::ingress::{InferAnswer, InferError};

/// The answer of a batch that has one.
pub(super) fn answer(
    app: &DirectApp,
    version: &DirectVersion,
    (output, compute): &(BatchOutput, Micros),
    count: usize,
    began: Instant,
) -> Result<InferAnswer, InferError> {
    let answers = answers(output, count, version, *compute);
    let outputs = app.outputs.tensors(&answers);
    let waited = Micros::from(began.elapsed());
    Ok(InferAnswer {
        outputs: outputs.map_err(|reason| end::failed(&app.name, &reason))?,
        variant: Arc::clone(&version.variant_name),
        exit: Arc::clone(&version.exit_name),
        policy: NO_POLICY.into(),
        batch_size: u32::try_from(count).unwrap_or(u32::MAX),
        queue_us: waited.0.saturating_sub(compute.0),
        compute_us: compute.0,
        deadline_met: true,
        short_circuit: false,
        window: 0,
    })
}

fn answers(
    output: &BatchOutput,
    count: usize,
    version: &DirectVersion,
    compute: Micros,
) -> Vec<RowAnswer> {
    let mut probabilities = output.rows();
    let tensors = match output {
        BatchOutput::Tensors(rows) => rows.as_slice(),
        _ => &[],
    };
    let answer = |row: usize| RowAnswer {
        probabilities: probabilities.next().unwrap_or_default().to_vec(),
        tensors: tensors.get(row).cloned().unwrap_or_default(),
        ran: Some((version.variant, version.exit)),
        policy: NO_POLICY.into(),
        window: 0,
        batch_size: u32::try_from(count).unwrap_or(u32::MAX),
        queue: Micros::ZERO,
        compute,
        in_time: true,
    };
    (0..count).map(answer).collect()
}
