//! Lanes beyond the drawing of them: batches below `min_batch`, and workers that come and go.

use smallvec::SmallVec;

use super::Scheduler;
use crate::catalog::Late;
use crate::ids::{ExitId, RequestId, VariantId, WorkerId};
use crate::lane::LaneQueue;
use crate::time::Time;

impl Scheduler {
    /// Notes when a lane must start a batch even if it stays below its `min_batch`.
    pub(super) fn watch_lane(&mut self, worker: WorkerId, variant: VariantId, exit: ExitId) {
        let mut lanes = self.workers[worker].lanes.iter();
        let lane = lanes.find(|lane| lane.leads_to(variant, exit));
        if let Some(lane) = lane.filter(|lane| lane.is_gathering()) {
            let start_by = self.start_by(worker, lane, lane.earliest);
            self.lanes_due = self.lanes_due.min(start_by);
        }
    }

    /// When a batch of all requests in a lane must start to end by a deadline; the deadline itself
    /// where the app leaves late requests to the policy.
    fn start_by(&self, worker: WorkerId, lane: &LaneQueue, deadline: Time) -> Time {
        if self
            .catalog
            .app(lane.app)
            .is_some_and(|app| app.late == Late::Serve)
        {
            return deadline;
        }
        let (variant, exit) = (lane.variant, lane.exit);
        let (front, back) = lane.waiting.as_slices();
        let cost = self.costs.of_all(&self.table, front) + self.costs.of_all(&self.table, back);
        let latency = self.catalog.latency_of(worker, variant, exit, cost);
        let start_by = deadline - latency.unwrap_or_default();
        let spec = &self.catalog.workers[worker.index()];
        match self.workers[worker].resident.contains(&variant) {
            true => start_by,
            false => start_by - self.catalog.profile.load_time(spec.kind, variant),
        }
    }

    /// Lets lanes start a batch of any size whose requests would otherwise be late.
    pub(super) fn start_due_lanes(&mut self, now: Time) {
        if now < self.lanes_due {
            return;
        }
        self.lanes_due = Time::NEVER;
        let gathering: SmallVec<[WorkerId; 8]> = self.workers.gathering().collect();
        for worker in gathering {
            for at in 0..self.workers[worker].lanes.len() {
                self.look_at_lane(now, worker, at);
            }
        }
    }

    fn look_at_lane(&mut self, now: Time, worker: WorkerId, at: usize) {
        // Read without marking the worker as written to.
        let workers: &[_] = &self.workers;
        let lane = &workers[worker.index()].lanes[at];
        if !lane.is_gathering() {
            return;
        }
        // Fewer than `min_batch` requests.
        let deadlines = lane.waiting.iter().filter_map(|&id| self.deadline(id));
        let earliest = deadlines.min().unwrap_or(now);
        let start_by = self.start_by(worker, lane, earliest);
        if start_by > now {
            self.lanes_due = self.lanes_due.min(start_by);
            return;
        }
        self.workers[worker].lanes[at].is_due = true;
        self.may_start.push(worker);
    }

    fn deadline(&self, id: RequestId) -> Option<Time> {
        self.table.get(id).map(|entry| entry.request.deadline)
    }

    /// No more arrivals: lanes start batches of any size.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        self.waive_min_batches();
    }

    pub(super) fn waive_min_batches(&mut self) {
        for worker in self.workers.all_mut() {
            worker.lanes.iter_mut().for_each(|lane| lane.min_batch = 1);
        }
        self.may_start.extend(self.workers.ids());
    }

    /// A worker went away or came back, with its lanes again. The host chooses anew for the requests
    /// that no worker could run, and the policy is asked.
    pub(super) fn worker_changed(&mut self, now: Time, worker: WorkerId) {
        if self.workers[worker].up {
            self.routes.restore(worker, &mut self.workers[worker]);
        }
        self.take_over_stranded(now);
        self.trigger.happened().workers = true;
        self.rescue.happened().workers = true;
    }
}
