//! Cheap policies, so that the benchmark measures the simulator and the core.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Lane, Plan, Route};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers};
use switchyard_core::time::Micros;
use switchyard_core::window::{IDLE, Window};

use crate::test_bed::{APPS, MAX_BATCH};

/// Idle workers take batches of the oldest requests of one app.
#[derive(Default)]
pub(crate) struct JoinIdle {
    description: Description,
    /// Pending requests by app, oldest first.
    waiting: [Vec<RequestId>; APPS as usize],
    next_app: usize,
}

/// Routes every arrival to a random worker; opens no window after the first.
#[derive(Default)]
pub(crate) struct Routed {
    description: Description,
    workers: u32,
}

// === impl JoinIdle ===

impl JoinIdle {
    /// With a window when a request arrives or a worker becomes idle.
    pub(crate) fn on_events() -> Self {
        let mut made = Self::default();
        made.description.on = Triggers {
            arrival: true,
            worker_idle: true,
            ..Triggers::default()
        };
        made
    }

    /// With a window every `period`.
    pub(crate) fn every(period: Micros) -> Self {
        let mut made = Self::default();
        made.description.every = Some(period);
        made
    }

    /// The next app that has requests.
    fn next_app(&mut self) -> Option<usize> {
        let apps = self.waiting.len();
        let from = self.next_app;
        let app = (0..apps)
            .map(|step| (from + step) % apps)
            .find(|&app| !self.waiting[app].is_empty())?;
        self.next_app = (app + 1) % apps;
        Some(app)
    }
}

impl Policy for JoinIdle {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        self.waiting.iter_mut().for_each(Vec::clear);
        for (&id, &app) in window.requests.id.iter().zip(&window.requests.app) {
            self.waiting[app as usize].push(RequestId(id));
        }
        let workers = &window.workers;
        for worker in 0..workers.up.len() {
            if workers.running_variant[worker] != IDLE || workers.queued[worker] > 0 {
                continue;
            }
            let Some(app) = self.next_app() else { break };
            let waiting = &mut self.waiting[app];
            let size = waiting.len().min(MAX_BATCH as usize);
            let dispatch = Dispatch {
                worker: WorkerId(worker as u32),
                variant: VariantId(2 * app as u32 + 1),
                from_stage: 0,
                to_stage: 1,
                exit: Some(ExitId(0)),
                place: 0,
                size: 0,
            };
            plan.dispatch(dispatch, waiting.drain(..size));
        }
        Ok(())
    }
}

// === impl Routed ===

impl Policy for Routed {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.workers = catalog.workers.len() as u32;
        Ok(())
    }

    fn schedule(&mut self, _: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let lane = |app: u32, worker| Lane {
            worker: WorkerId(worker),
            variant: VariantId(2 * app),
            exit: ExitId(0),
            weight: 1.0 / f64::from(self.workers),
            min_batch: 1,
            max_batch: MAX_BATCH,
            capacity: 64,
        };
        plan.routes.extend((0..APPS).map(|app| Route {
            app: AppId(app),
            lanes: (0..self.workers).map(|worker| lane(app, worker)).collect(),
        }));
        Ok(())
    }
}
