//! Plans, from Python.

use pyo3::prelude::*;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::time::Time;

/// The plan as the package hands it over.
#[derive(FromPyObject)]
pub(crate) struct RawPlan {
    dispatches: Vec<RawDispatch>,
    revokes: Vec<u64>,
    rejects: Vec<u64>,
    wake_us: Option<u64>,
}

#[derive(FromPyObject)]
struct RawDispatch {
    worker: u32,
    variant: u32,
    exit: u32,
    place: u32,
    requests: Vec<u64>,
}

// === impl RawPlan ===

impl RawPlan {
    /// Numbers may name anything: the scheduler checks the plan.
    pub(crate) fn fill(self, catalog: &Catalog, plan: &mut Plan) {
        for batch in self.dispatches {
            let (variant, exit) = (VariantId(batch.variant), ExitId(batch.exit));
            let exits = catalog.variant(variant).map(|variant| &variant.exits);
            let to_stage = exits.and_then(|exits| exits.get(exit.index()));
            let dispatch = Dispatch {
                worker: WorkerId(batch.worker),
                variant,
                from_stage: 0,
                to_stage: to_stage.map_or(0, |exit| exit.after_stage),
                exit: Some(exit),
                place: batch.place,
                size: 0,
            };
            plan.dispatch(dispatch, batch.requests.into_iter().map(RequestId));
        }
        plan.revokes.extend(self.revokes.into_iter().map(BatchId));
        plan.rejects.extend(self.rejects.into_iter().map(RequestId));
        plan.wake = self.wake_us.map(Time);
    }
}
