//! Batches on their way to the workers.

use switchyard_core::Event;
use switchyard_core::event::{BatchEnd, Launch};
use switchyard_core::ids::{RequestId, WorkerId};
use switchyard_core::time::Time;
use switchyard_executor::{Job, JobRow, Refused};

use super::ends::lost;
use super::turn::Driver;

impl Driver {
    pub(super) fn start(&mut self, now: Time, launch: &Launch) {
        let catalog = self.scheduler.catalog();
        let app = catalog.variant(launch.variant).map(|v| v.app);
        let drops = app.and_then(|app| catalog.app(app)?.late.drops().then_some(()));
        let until = drops.and_then(|()| self.waiters.last_deadline(&launch.requests));
        let rows = launch.requests.iter().map(|&request| JobRow {
            request,
            input: match launch.from_stage {
                0 => self.waiters.inputs(request),
                _ => None,
            },
        });
        let job = Job {
            batch: launch.batch,
            app: app.unwrap_or_default(),
            variant: launch.variant,
            from_stage: launch.from_stage,
            to_stage: launch.to_stage,
            exit: launch.exit,
            rows: rows.collect(),
            soon: launch.soon.clone(),
            until: until.map(|at| self.clock.at(at)),
        };
        let handed_over = match self.crew.get(launch.worker) {
            Some(worker) => worker.run(job).map_err(|refused| match refused {
                Refused::Full(_) => BatchEnd::Failed {
                    reason: "the worker's command queue is full".to_owned(),
                    repeatable: true,
                },
                Refused::Down(_) => lost("the worker's thread has ended"),
            }),
            None => Err(lost("there is no such worker")),
        };
        match handed_over {
            Ok(()) => {
                self.waiters.started(launch);
                if let Some(traces) = &self.traces {
                    traces.started(&mut self.waiters, &self.scheduler, launch, self.clock);
                }
            }
            Err(end) => {
                let reason = format!("{end:?}");
                tracing::error!(
                    pool = self.name,
                    worker = launch.worker.0,
                    reason,
                    "batch refused"
                );
                let (worker, batch) = (launch.worker, launch.batch);
                let is_lost = matches!(end, BatchEnd::Lost { .. });
                let event = Event::Finished { worker, batch, end };
                self.scheduler.handle(now, event);
                if is_lost {
                    self.worker_lost(worker, &reason);
                }
            }
        }
    }

    pub(super) fn release(&self, worker: WorkerId, request: RequestId) {
        let Some(held) = self.crew.get(worker) else {
            return;
        };
        if let Err(Refused::Full(_)) = held.release(request) {
            // The queue has room for a release of everything that may be parked.
            tracing::error!(
                pool = self.name,
                worker = worker.0,
                "release refused: queue full"
            );
        }
    }
}
