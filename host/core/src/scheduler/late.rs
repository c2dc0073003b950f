//! Requests that will be late, in apps whose late requests are served last.

use smallvec::SmallVec;

use super::Scheduler;
use crate::capacity::WorkerBounds;
use crate::cost::Cost;
use crate::ids::{AppId, ExitId, VariantId, WorkerId};
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
        let idle: SmallVec<[WorkerId; 8]> = self.workers.idle().collect();
        // The first one may have too little memory.
        for worker in idle {
            if let Some(batch) = self.late_batch(worker) {
                self.start(now, worker, batch);
                return true;
            }
        }
        false
    }

    /// When a late request is served although others are pending, if a worker is idle.
    pub(super) fn late_due(&self) -> Option<Time> {
        let &(deadline, _) = self.late.first()?;
        let due = deadline + self.config.patience + Micros(1);
        self.workers.any_idle().then_some(due)
    }

    /// The oldest late requests of one app and pin: with the variant that their clients pinned, otherwise
    /// in the batch with the largest rate.
    fn late_batch(&mut self, worker: WorkerId) -> Option<WorkerBatch> {
        let group_of = |id| {
            let request = &self.table.get(id)?.request;
            Some((request.app, request.pinned))
        };
        let mut groups = self.late.iter().filter_map(|&(_, id)| group_of(id));
        let (group, (variant, exit, size)) =
            groups.find_map(|group| Some((group, self.late_way(worker, group)?)))?;
        let to_stage = self.catalog.variant(variant)?.exit(exit)?.after_stage;
        let of_group = (self.late.iter()).filter(|&&(_, id)| group_of(id) == Some(group));
        let rows: Vec<_> = of_group.take(size as usize).copied().collect();
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
            // Lost or failed, it is the host's again.
            pinned: group.1.is_some(),
            late: true,
        };
        self.predict(worker, &mut batch);
        Some(batch)
    }

    /// Variant, exit and largest batch of a worker for late requests of an app and pin.
    fn late_way(
        &self,
        worker: WorkerId,
        (app, pinned): (AppId, Option<VariantId>),
    ) -> Option<(VariantId, ExitId, u32)> {
        let spec = self.catalog.worker(worker)?;
        if let Some(pinned) = pinned {
            let variant = self.catalog.variant(pinned)?;
            let fits = variant.memory_bytes <= spec.memory_bytes;
            return fits.then_some((pinned, variant.last_exit(), variant.max_batch));
        }
        let bounds = WorkerBounds::of(spec);
        let best = (self.capacity).best_on(&self.catalog, app, spec.kind, bounds)?;
        Some((best.variant, best.exit, best.batch.size))
    }
}
