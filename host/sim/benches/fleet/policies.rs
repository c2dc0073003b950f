//! A policy whose time does not depend on the number of workers: it looks for idle workers from where it
//! found the last one.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers};
use switchyard_core::window::{IDLE, Window};

use crate::test_bed::{APPS, MAX_BATCH};

/// Workers that one window looks at, at most.
const LOOKED_AT: usize = 64;

/// Gives the oldest requests to the next idle workers, in batches of one app.
#[derive(Default)]
pub(crate) struct NextIdle {
    description: Description,
    /// Pending requests by app, oldest first.
    waiting: [Vec<RequestId>; APPS as usize],
    next_worker: usize,
}

// === impl NextIdle ===

impl NextIdle {
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

    fn next_idle(&mut self, window: &Window, plan: &Plan) -> Option<WorkerId> {
        let workers = &window.workers;
        let count = workers.up.len();
        for _ in 0..LOOKED_AT.min(count) {
            let at = self.next_worker;
            self.next_worker = (at + 1) % count;
            let is_idle = workers.running_variant[at] == IDLE && workers.queued[at] == 0;
            let is_new = (plan.dispatches.iter()).all(|other| other.worker.index() != at);
            if is_idle && is_new && workers.up[at] != 0 {
                return Some(WorkerId(at as u32));
            }
        }
        None
    }
}

impl Policy for NextIdle {
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
        for app in 0..self.waiting.len() {
            let waiting = std::mem::take(&mut self.waiting[app]);
            for batch in waiting.chunks(MAX_BATCH as usize) {
                let Some(worker) = self.next_idle(window, plan) else {
                    break;
                };
                let dispatch = Dispatch {
                    worker,
                    variant: VariantId(2 * app as u32),
                    from_stage: 0,
                    to_stage: 1,
                    exit: Some(ExitId(0)),
                    place: 0,
                    size: 0,
                };
                plan.dispatch(dispatch, batch.iter().copied());
            }
            self.waiting[app] = waiting;
        }
        Ok(())
    }
}
