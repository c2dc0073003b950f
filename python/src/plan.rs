//! Plans, from Python.

use pyo3::prelude::*;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::time::Time;

/// The plan as the package hands it over.
#[derive(FromPyObject)]
pub(crate) struct RawPlan {
    dispatches: Vec<RawDispatch>,
    revokes: Vec<u64>,
    rejects: Vec<u64>,
    answers: Vec<u64>,
    routes: Vec<RawRoute>,
    wake_us: Option<u64>,
    reasons: Vec<(u32, String)>,
}

#[derive(FromPyObject)]
struct RawDispatch {
    worker: u32,
    variant: u32,
    from_stage: u32,
    /// None: that of the exit.
    to_stage: Option<u32>,
    exit: Option<u32>,
    place: u32,
    requests: Vec<u64>,
}

#[derive(FromPyObject)]
struct RawRoute {
    app: u32,
    lanes: Vec<RawLane>,
}

#[derive(FromPyObject)]
struct RawLane {
    worker: u32,
    variant: u32,
    exit: u32,
    weight: f64,
    min_batch: u32,
    max_batch: u32,
    capacity: u32,
}

// === impl RawPlan ===

impl RawPlan {
    /// Numbers may name anything: the scheduler checks the plan.
    pub(crate) fn fill(self, catalog: &Catalog, plan: &mut Plan) {
        for batch in self.dispatches {
            let dispatch = batch.dispatch(catalog);
            plan.dispatch(dispatch, batch.requests.into_iter().map(RequestId));
        }
        plan.revokes.extend(self.revokes.into_iter().map(BatchId));
        plan.rejects.extend(self.rejects.into_iter().map(RequestId));
        plan.answers.extend(self.answers.into_iter().map(RequestId));
        plan.routes.extend(self.routes.into_iter().map(Route::from));
        plan.wake = self.wake_us.map(Time);
        plan.reasons = self.reasons;
    }
}

// === impl RawDispatch ===

impl RawDispatch {
    fn dispatch(&self, catalog: &Catalog) -> Dispatch {
        let (variant, exit) = (VariantId(self.variant), self.exit.map(ExitId));
        let of_exit = || Some(catalog.variant(variant)?.exit(exit?)?.after_stage);
        Dispatch {
            worker: WorkerId(self.worker),
            variant,
            from_stage: self.from_stage,
            to_stage: self.to_stage.or_else(of_exit).unwrap_or_default(),
            exit,
            place: self.place,
            size: 0,
        }
    }
}

impl From<RawRoute> for Route {
    fn from(from: RawRoute) -> Self {
        Self {
            app: AppId(from.app),
            lanes: from.lanes.into_iter().map(Lane::from).collect(),
        }
    }
}

impl From<RawLane> for Lane {
    fn from(from: RawLane) -> Self {
        Self {
            worker: WorkerId(from.worker),
            variant: VariantId(from.variant),
            exit: ExitId(from.exit),
            weight: from.weight,
            min_batch: from.min_batch,
            max_batch: from.max_batch,
            capacity: from.capacity,
        }
    }
}
