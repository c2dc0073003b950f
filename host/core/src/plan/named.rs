//! The worker and the variant that an entry of a plan names.

use super::PlanError;
use super::state::PlanState;
use crate::catalog::{Variant, WorkerSpec};
use crate::ids::{ExitId, VariantId, WorkerId};

/// The worker exists, is up, and can hold the variant.
pub(super) fn check_worker<'a, S: PlanState>(
    at: &impl Fn() -> String,
    worker: WorkerId,
    variant: VariantId,
    state: &'a S,
) -> Result<&'a Variant, PlanError> {
    let Some(spec) = state.catalog().worker(worker) else {
        let reason = format!("there is no worker {}", worker.0);
        return Err(PlanError::invalid(at(), "worker", reason));
    };
    if !state.is_up(worker) {
        let reason = format!("{} is away", spec.name);
        return Err(PlanError::invalid(at(), "worker", reason));
    }
    let Some(found) = state.catalog().variant(variant) else {
        let reason = format!("there is no variant {}", variant.0);
        return Err(PlanError::invalid(at(), "variant", reason));
    };
    if found.memory_bytes > spec.memory_bytes {
        let reason = format!("{} can never hold {}", spec.name, found.name);
        return Err(PlanError::invalid(at(), "variant", reason));
    }
    Ok(found)
}

/// The worker answers at this exit.
pub(super) fn check_exit(
    at: &impl Fn() -> String,
    exit: ExitId,
    variant: &Variant,
    spec: &WorkerSpec,
) -> Result<(), PlanError> {
    if spec.can.exits || exit == variant.last_exit() {
        return Ok(());
    }
    let reason = format!("{} answers at last exits only", spec.name);
    Err(PlanError::invalid(at(), "exit", reason))
}
