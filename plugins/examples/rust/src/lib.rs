//! Earliest deadline first.
//!
//! On each idle worker the request with the earliest deadline chooses the app. The batch is as
//! large as this deadline allows and runs on the most accurate variant that meets it.

#![forbid(unsafe_code)]

use serde::Deserialize;
use switchyard_sdk::ladder::Ladder;
use switchyard_sdk::{
    Catalog, Description, Events, PlanBuilder, Policy, RequestId, RequestRef, Window, WorkerRef,
    export_policy, settings,
};

/// The policy's JSON. Unknown fields are refused, so that loading finds a misspelt name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {}

/// Earliest deadline first.
#[derive(Debug)]
pub struct EarliestDeadline {
    /// Per worker and app: the variants to choose from, most accurate first.
    ladders: Vec<Vec<Ladder>>,
}

impl Policy for EarliestDeadline {
    fn describe() -> Description {
        let summary = "earliest deadline first, the most accurate variant that is in time";
        Description::new("earliest-deadline", env!("CARGO_PKG_VERSION"), summary)
            .on(Events::ARRIVAL | Events::WORKER_IDLE)
    }

    fn configure(catalog: &Catalog, json: &str) -> Result<Self, String> {
        let Settings {} = settings::parse(json)?;
        let ladders = catalog.workers().map(|worker| {
            let ladder = |app| Ladder::new(catalog, worker.id, app);
            catalog.apps().map(|app| ladder(app.id)).collect()
        });
        Ok(Self {
            ladders: ladders.collect(),
        })
    }

    fn schedule(&mut self, window: &Window, plan: &mut PlanBuilder) -> Result<(), String> {
        let fresh = window
            .requests()
            .filter(|request| request.progress().is_none());
        let mut waiting: Vec<_> = fresh.collect();
        // Equal deadlines: the oldest first.
        waiting.sort_unstable_by_key(|request| (request.deadline_us(), request.index()));
        for worker in window.idle_workers() {
            // Parked requests first: only this worker has their activations.
            if plan.resume_parked(worker.id()) == 0 {
                self.start(worker, &mut waiting, plan);
            }
        }
        Ok(())
    }
}

impl EarliestDeadline {
    /// Launches a batch with the most urgent request that this worker can run.
    fn start(&self, worker: WorkerRef, waiting: &mut Vec<RequestRef>, plan: &mut PlanBuilder) {
        let ladders = &self.ladders[worker.id().index()];
        let able = |request: &&RequestRef| ladders[request.app().index()].batch_max() > 0;
        let Some(&first) = waiting.iter().find(able) else {
            return;
        };
        let joins = |request: &&RequestRef| request.app() == first.app();
        let count = waiting.iter().filter(joins).count();
        let ladder = &ladders[first.app().index()];
        if let Some((rung, size)) = ladder.greedy(count, first.slack_us()) {
            let batch = waiting.iter().filter(joins).take(size);
            let batch: Vec<RequestId> = batch.map(|request| request.id()).collect();
            waiting.retain(|request| !batch.contains(&request.id()));
            plan.run(worker.id(), rung.variant).requests(batch);
        }
    }
}

export_policy!(EarliestDeadline);

#[cfg(test)]
mod tests;
