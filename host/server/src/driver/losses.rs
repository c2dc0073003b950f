//! Workers that are lost, and their return.

use switchyard_core::Event;
use switchyard_core::ids::WorkerId;
use switchyard_core::time::Time;
use switchyard_executor::Residency;

use super::restarts::{Restarted, StartNumber};
use super::turn::Driver;
use crate::readiness::Awaited;

impl Driver {
    /// A worker runs no batch any more, and the core knows: loads on it fail, and it is started anew.
    pub(super) fn worker_lost(&mut self, worker: WorkerId, reason: &str) {
        self.worker_absent(worker, reason, false);
    }

    /// A worker takes no more batches; the running one may end.
    pub(super) fn worker_leaving(&mut self, worker: WorkerId, reason: &str) {
        self.worker_absent(worker, reason, true);
    }

    fn worker_absent(&mut self, worker: WorkerId, reason: &str, is_leaving: bool) {
        let Some(pause) = self.crew.restart(worker) else {
            return;
        };
        let is_news = self.crew.is_news(worker, reason);
        self.show_address(worker);
        let is_free = self.crew.address(worker) == Some(None);
        let (pool, name) = (&self.name, self.worker_name(worker));
        let restart_in_ms = pause.as_millis() as u64;
        if is_leaving {
            tracing::warn!(pool, worker = name, reason, "worker leaves");
        } else if is_free && is_news {
            tracing::info!(pool, worker = name, reason, "worker has no server");
        } else if is_news {
            tracing::error!(pool, worker = name, reason, restart_in_ms, "worker lost");
        } else {
            tracing::debug!(
                pool,
                worker = name,
                reason,
                restart_in_ms,
                "worker still lost"
            );
        }
        self.meters.worker_up(worker, false);
        self.loads_lost(worker, reason);
        self.look_for_workers(reason);
    }

    /// The batch that was overdue has ended: the worker serves on, without a restart.
    pub(super) fn worker_recovered(&mut self, worker: WorkerId) {
        self.crew.is_news(worker, "");
        self.meters.worker_up(worker, true);
        self.let_go_late(worker);
        self.look_for_workers("");
    }

    /// A worker was started anew.
    pub(super) fn restarted(
        &mut self,
        now: Time,
        worker: WorkerId,
        start: StartNumber,
        restarted: Restarted,
    ) {
        self.crew.restart_ended(worker);
        if self.scheduler.is_up(worker) {
            if let Ok(started) = restarted {
                self.crew.dismiss(worker, started);
            }
            return;
        }
        let started = match restarted {
            // The process that leaves still runs a batch, and answers again.
            Ok(started) if self.scheduler.is_running(worker) => {
                self.crew.dismiss(worker, started);
                self.crew.restart(worker);
                return;
            }
            Ok(started) => started,
            Err(reason) => {
                self.worker_lost(worker, &format!("not started: {reason}"));
                return;
            }
        };
        self.crew.replace(worker, start, started);
        self.waiters.forget(worker);
        let Some(held) = self.held.get_mut(worker.index()) else {
            return;
        };
        let before = std::mem::take(&mut held.holds);
        held.earlier = before.counts;
        held.holds = Residency {
            counts: before.counts,
            ..Residency::default()
        };
        self.scheduler.handle(now, Event::WorkerUp(worker));
        self.show_address(worker);
        let address = self.crew.address(worker).flatten();
        let (pool, name) = (&self.name, self.worker_name(worker));
        tracing::warn!(pool, worker = name, address, start, "worker restarted");
        self.meters.restarted(worker);
        self.meters.worker_up(worker, true);
        self.load_again(worker, &before.resident);
        self.look_for_workers("");
    }

    /// The address of a worker's server, for the metrics.
    pub(super) fn show_address(&mut self, worker: WorkerId) {
        if let Some(address) = self.crew.address(worker) {
            self.meters.worker_address(worker, address.as_deref());
        }
    }

    /// A pool without a worker is not ready.
    fn look_for_workers(&self, reason: &str) {
        let workers = self.scheduler.catalog().workers.len() as u32;
        let mut workers = (0..workers).map(WorkerId);
        if workers.any(|worker| self.scheduler.is_up(worker)) {
            self.readiness.arrived(Awaited::Worker);
        } else {
            let reason = format!("no worker is up: {reason}");
            self.readiness.wait_for(Awaited::Worker, reason);
        }
    }

    pub(super) fn worker_name(&self, worker: WorkerId) -> &str {
        let spec = self.scheduler.catalog().worker(worker);
        spec.map_or("", |spec| spec.name.as_str())
    }
}
