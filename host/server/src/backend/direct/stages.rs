//! Batches of some stages, whose activations stay here for the scheduler's next batch.

use std::sync::Arc;
use std::time::Instant;

use switchyard_core::ids::RequestId;
use switchyard_executor::JobRow;

use super::answer::answer;
use super::app::{DirectVersion, NO_POLICY};
use super::parking::{ParkKey, ParkingBatch};
use super::{Batch, DirectBackend};
use crate::backend::{end, inputs};
use crate::ingress::{ConnectionLife, InferAnswer, InferCall, InferError, StageCall, StageWork};

/// Stages of a version.
#[derive(Clone, Copy)]
struct StageRange {
    from: u32,
    to: u32,
    /// The activations are kept; otherwise the version's exit answers.
    parks: bool,
}

impl DirectBackend {
    pub(super) async fn run_stages(
        &self,
        mut call: InferCall,
        connection: ConnectionLife,
    ) -> Result<InferAnswer, InferError> {
        let began = Instant::now();
        let stages = call
            .stages
            .take()
            .ok_or_else(|| InferError::Failed("switchyard_session: is missing".to_owned()))?;
        let keys = ParkKey::of(&stages);
        if stages.work == StageWork::Release {
            let mut parking = self.shared.parking();
            keys.into_iter().for_each(|key| parking.release(key));
            drop(parking);
            self.drop_released();
            return Ok(nothing());
        }
        let (app, version) = self.asked(&call)?;
        let range = range_of(&stages, version);
        let rows = match range.from {
            0 => {
                let rows = inputs::rows(call.inputs, call.rows, false, &app.raw);
                let rows = rows.map_err(|reason| end::failed(&app.name, &reason))?;
                self.numbered(rows)
            }
            _ => self.kept(&keys)?,
        };
        let count = rows.len();
        let parks = range.parks.then(|| ParkingBatch {
            rows: keys
                .into_iter()
                .zip(rows.iter().map(|row| row.request))
                .collect(),
            connection,
        });
        let batch = Batch {
            from_stage: range.from,
            to_stage: range.to,
            exit: (!range.parks).then_some(version.exit),
            rows,
            parks,
        };
        let finished = self.finish(&app.name, version, batch).await;
        self.drop_released();
        let finished = finished?;
        match range.parks {
            false => answer(app, version, &finished, count, began),
            true => Ok(InferAnswer {
                variant: Arc::clone(&version.variant_name),
                batch_size: u32::try_from(count).unwrap_or(u32::MAX),
                compute_us: finished.1.0,
                ..nothing()
            }),
        }
    }

    /// The rows whose activations are here.
    fn kept(&self, keys: &[ParkKey]) -> Result<Vec<JobRow>, InferError> {
        let taken = self.shared.parking().take(keys);
        let requests: Vec<RequestId> = taken.map_err(|lost| {
            // No failure of the model: the scheduler repeats the request from its first stage.
            let ParkKey { session, row } = lost;
            InferError::Failed(format!(
                "row {row} of session {session} is not parked here; repeat it from its first stage"
            ))
        })?;
        let row = |request| JobRow {
            request,
            input: None,
        };
        Ok(requests.into_iter().map(row).collect())
    }

    /// Has the executor drop the activations that were released.
    pub(super) fn drop_released(&self) {
        let dropped = self.shared.parking().take_dropped();
        for request in dropped {
            if self.worker.release(request).is_err() {
                // Its queue is full: at the next look.
                self.shared.parking().not_dropped(request);
            }
        }
    }

    /// Forgets activations whose scheduler has gone or does not come back to them.
    pub(crate) fn sweep(&self) {
        let lost = {
            let mut parking = self.shared.parking();
            parking.sweep(Instant::now());
            std::mem::take(&mut parking.lost)
        };
        if lost > 0 {
            self.parked_lost.increment(lost);
            tracing::warn!(
                rows = lost,
                "parked activations dropped: their scheduler did not come back, or parks more than parked_max"
            );
        }
        self.drop_released();
    }
}

fn range_of(stages: &StageCall, version: &DirectVersion) -> StageRange {
    match stages.work {
        StageWork::Park {
            from_stage,
            to_stage,
        } => StageRange {
            from: from_stage,
            to: to_stage,
            parks: true,
        },
        StageWork::Answer { from_stage } => StageRange {
            from: from_stage,
            to: version.to_stage,
            parks: false,
        },
        // Nothing to run.
        StageWork::Release => StageRange {
            from: 0,
            to: 0,
            parks: false,
        },
    }
}

/// An answer without outputs.
fn nothing() -> InferAnswer {
    InferAnswer {
        outputs: Vec::new(),
        variant: "".into(),
        exit: "".into(),
        policy: NO_POLICY.into(),
        batch_size: 0,
        queue_us: 0,
        compute_us: 0,
        deadline_met: true,
        short_circuit: false,
        window: 0,
    }
}
