//! Requests that will be late, in apps whose late requests are served last.

use super::Scheduler;
use crate::cost::Cost;
use crate::ids::WorkerId;
use crate::time::{Micros, Time};
use crate::worker::WorkerBatch;

impl Scheduler {
    /// Gives an idle worker a batch of requests that will be late, if nothing else waits, or if the
    /// policy leaves the worker idle although they have waited for `patience`. False: there is no
    /// such worker or request.
    pub(super) fn serve_late(&mut self, now: Time) -> bool {
        let is_due = self.late_due().is_some_and(|at| at <= now);
        if self.late.is_empty() || !is_due && !self.table.pending().is_empty() {
            return false;
        }
        let Some(worker) = self.workers.ids().find(|&w| self.workers[w].is_idle()) else {
            return false;
        };
        let Some(batch) = self.late_batch(worker) else {
            return false;
        };
        self.start(now, worker, batch);
        true
    }

    /// When a late request is served although others are pending, if a worker is idle.
    pub(super) fn late_due(&self) -> Option<Time> {
        let &(deadline, _) = self.late.first()?;
        let due = deadline + self.config.patience + Micros(1);
        self.workers.any_idle().then_some(due)
    }

    /// The oldest late requests of one app, in the batch with the largest rate.
    fn late_batch(&mut self, worker: WorkerId) -> Option<WorkerBatch> {
        let spec = self.catalog.worker(worker)?;
        let (kind, memory) = (spec.kind, spec.memory_bytes);
        let app_of = |id| self.table.get(id).map(|entry| entry.request.app);
        let (app, best) = self.late.iter().find_map(|&(_, id)| {
            let app = app_of(id)?;
            let best = self.capacity.best_on(&self.catalog, app, kind, memory)?;
            Some((app, best))
        })?;
        let (variant, exit) = (best.variant, best.exit);
        let to_stage = self.catalog.variant(variant)?.exit(exit)?.after_stage;
        let size = best.batch.size as usize;
        let of_app = self.late.iter().filter(|&&(_, id)| app_of(id) == Some(app));
        let rows: Vec<_> = of_app.take(size).copied().collect();
        for row in &rows {
            self.late.remove(row);
        }
        let mut batch = WorkerBatch {
            id: self.next_batch(),
            variant,
            from_stage: 0,
            to_stage,
            exit: Some(exit),
            members: rows.into_iter().map(|(_, id)| id).collect(),
            cost: Cost::ZERO,
            expected: Micros::ZERO,
            load: Micros::ZERO,
            decided: self.decided_by_host(),
            pinned: false,
            late: true,
        };
        self.predict(worker, &mut batch);
        Some(batch)
    }
}
