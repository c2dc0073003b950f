//! First come, first served: idle workers take the oldest requests of the oldest one's app.

use switchyard_core::catalog::{Catalog, Variant};
use switchyard_core::ids::{AppId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::{Description, Policy, PolicyFault, Triggers};
use switchyard_core::window::{IDLE, Window};

pub(crate) struct FirstCome {
    description: Description,
    /// From 0, the least accurate variant of each app, to 1, the most accurate.
    accuracy: f64,
    batch_max: usize,
    /// By app: its variant, stages and exit.
    choice: Vec<(VariantId, u32, ExitId)>,
}

// === impl FirstCome ===

impl FirstCome {
    /// With variants of a relative accuracy, in batches of at most `batch_max`.
    pub(crate) fn new(accuracy: f64, batch_max: usize) -> Self {
        let on = Triggers {
            arrival: true,
            worker_idle: true,
            completion: true,
            ..Triggers::default()
        };
        Self {
            description: Description {
                name: "fcfs".to_owned(),
                on,
                ..Description::default()
            },
            accuracy,
            batch_max,
            choice: Vec::new(),
        }
    }
}

impl Policy for FirstCome {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        let choice = (0..catalog.apps.len() as u32).map(|app| {
            let mut own: Vec<_> = catalog.variants_of(AppId(app)).collect();
            let accuracy = |variant: &Variant| variant.exits[variant.last_exit().index()].accuracy;
            own.sort_by(|a, b| accuracy(a.1).total_cmp(&accuracy(b.1)));
            let at = (self.accuracy * (own.len() - 1) as f64).round() as usize;
            let (id, variant) = own[at];
            (id, variant.stages, variant.last_exit())
        });
        self.choice = choice.collect();
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let mut waiting: Vec<(RequestId, u32)> = window
            .requests
            .id
            .iter()
            .zip(&window.requests.app)
            .map(|(&id, &app)| (RequestId(id), app))
            .collect();
        let workers = &window.workers;
        for worker in 0..workers.up.len() {
            if workers.running_variant[worker] != IDLE || workers.queued[worker] > 0 {
                continue;
            }
            let Some(&(_, app)) = waiting.first() else {
                break;
            };
            let (variant, to_stage, exit) = self.choice[app as usize];
            let taken = waiting
                .iter()
                .filter(|(_, own)| *own == app)
                .take(self.batch_max);
            let batch: Vec<RequestId> = taken.map(|(id, _)| *id).collect();
            waiting.retain(|(id, _)| !batch.contains(id));
            let dispatch = Dispatch {
                worker: WorkerId(worker as u32),
                variant,
                from_stage: 0,
                to_stage,
                exit: Some(exit),
                place: 0,
                size: 0,
            };
            plan.dispatch(dispatch, batch);
        }
        Ok(())
    }
}
