//! Opening a window: building it, asking the policy, applying its plan.

use std::sync::Arc;

use super::Scheduler;
use crate::cost::Cost;
use crate::decision::KeptWorkers;
use crate::event::{Command, Notice};
use crate::guard::Guard;
use crate::ids::{BatchId, RequestId, VariantId, WorkerId};
use crate::plan::{CheckedPlan, Dispatch, LiveState};
use crate::policy::WindowFields;
use crate::request::{Outcome, Rejection};
use crate::table::RequestState;
use crate::time::{Micros, Time};
use crate::trigger::{CROWD_MIN, Pending};
use crate::window::{Causes, Placed, PlacedState, RequestCost, RequestProgress, Window};
use crate::worker::{Decided, Members, Worker, WorkerBatch, WorkerRow};

impl Scheduler {
    /// Opens a window if one is due; false when none is.
    pub(super) fn open_window(&mut self, now: Time) -> bool {
        let waiting_count = self.table.pending().len();
        let waiting = waiting_count > 0;
        // A free worker is a cause only while requests wait.
        let idle_worker = waiting && self.workers.any_free();
        self.trigger.note_idle_worker(idle_worker);
        self.rescue.note_idle_worker(idle_worker);
        let pending = if !waiting && self.completions.is_empty() {
            Pending::Idle
        } else if waiting_count >= CROWD_MIN && !idle_worker {
            Pending::Crowd
        } else {
            Pending::Some
        };
        let Self {
            trigger,
            rescue,
            guard,
            ..
        } = self;
        trigger.tick(now, guard.description());
        if let Some(because) = trigger.take(now, guard.description(), pending) {
            rescue.forget();
            self.run_window(now, because, false);
            return true;
        }
        let rescued = guard
            .rescue()
            .and_then(|description| rescue.take(now, description, pending));
        match rescued.filter(|_| waiting) {
            Some(because) => {
                self.run_window(now, because, true);
                true
            }
            None => self.relieve(now),
        }
    }

    pub(super) fn run_window(&mut self, now: Time, because: Causes, rescue_only: bool) {
        self.windows_opened += 1;
        let (mut decision, before) = self.history.buffers();
        // The only reference so far, so that nothing is copied.
        let filled = Arc::make_mut(&mut decision);
        let is_told = self.config.tells_decisions || self.watched.is_some();
        let wants = self.shown();
        self.show(now, because, &mut filled.window);
        let kept = self.lend_workers(now, is_told, wants, before, &mut filled.window);
        filled.rescue = rescue_only;
        let plan = std::mem::take(&mut filled.plan);
        let Self {
            guard,
            table,
            workers,
            catalog,
            check,
            faulted,
            ..
        } = self;
        let served = guard.serve(
            &filled.window,
            rescue_only,
            plan,
            |plan| {
                if !plan.revokes.is_empty() {
                    workers.look_at_queues();
                }
                let state = LiveState {
                    catalog,
                    table,
                    workers,
                };
                CheckedPlan::try_new(plan, &state, check)
            },
            faulted,
        );
        self.take_workers_back(is_told, wants, &mut filled.window);
        if !rescue_only && !filled.window.is_empty() && self.guard.is_active(&served.by) {
            let in_vain = self.rejects_in_vain(now, filled.window.len(), served.plan.plan());
            let faulted = self.guard.rejected(now, self.windows_opened, in_vain);
            self.faulted.extend(faulted);
        }
        let is_replaced = (self.faulted.iter()).any(|fault| fault.taken_off && fault.is_active);
        for faulted in self.faulted.drain(..) {
            self.out
                .push_back(Command::Notice(Notice::PolicyFaulted(faulted)));
        }
        if is_replaced {
            // Before the plan: its routes are those of the successor.
            self.policy_replaced(now);
        }
        let window = filled.window.id;
        self.apply(now, window, &served.by, &served.plan, rescue_only);
        filled.plan = served.plan.into_plan();
        filled.plan.trim();
        filled.by = served.by;
        if is_told {
            self.out.push_back(Command::Decided(Arc::clone(&decision)));
        }
        self.history.record(decision, kept);
    }

    // ---- building the window ----------------------------------------------------------

    fn show(&mut self, now: Time, because: Causes, window: &mut Window) {
        let wants = self.shown();
        window.id = self.windows_opened;
        window.because = because;
        self.show_state(now, wants, window);
        window.completions.extend(self.completions.drain(..));
    }

    /// Gives the window the kept columns of workers.
    fn lend_workers(
        &mut self,
        now: Time,
        is_told: bool,
        wants: WindowFields,
        mut before: Vec<WorkerRow>,
        window: &mut Window,
    ) -> KeptWorkers {
        let workers = &mut self.workers;
        workers.show(now, is_told, wants.residents);
        workers.take_changes(&mut before, &mut window.changes.workers);
        window.changes.since = window.id - 1;
        window.changes.has_past_times = !is_told;
        let residents = wants.residents.then(|| workers.shared_residents());
        workers.lend(window, wants.residents);
        KeptWorkers {
            before,
            count: workers.shown(),
            residents,
        }
    }

    /// Takes them back; a decision that is told gets a copy.
    fn take_workers_back(&mut self, is_told: bool, wants: WindowFields, window: &mut Window) {
        let workers = &mut self.workers;
        workers.lend(window, wants.residents);
        if is_told {
            window.workers.clone_from(workers.columns());
            if wants.residents {
                window.residents.extend_from_slice(workers.residents());
            }
        }
    }

    /// Fills in the parts of a window that show the pool, without the workers.
    pub(super) fn show_state(&mut self, now: Time, wants: WindowFields, window: &mut Window) {
        window.now = now;
        self.show_requests(now, window, wants.evidence);
        if wants.placed {
            for (worker, held) in self.workers.with_ids() {
                self.show_placed(worker, held, &mut window.placed);
            }
        }
        window.arrival_rate.extend(self.load.rates(now));
        window.slowdown.extend(self.estimates.by_kind(now));
    }

    fn show_requests(&mut self, now: Time, window: &mut Window, evidence: bool) {
        let shown = &mut window.requests;
        shown.copy_due_first(self.table.pending_columns(), self.guard.reach(now));
        // Looks every request up, so only if one may have progress, evidence or a cost to show.
        let parked = self.workers.any_parked();
        let differ = self.costs.differ();
        if !evidence && !parked && !differ {
            return;
        }
        for (index, &id) in (0u32..).zip(&shown.id) {
            let Some(entry) = self.table.get(RequestId(id)) else {
                continue;
            };
            if let Some(progress) = entry.progress {
                shown.progress.push(RequestProgress {
                    index,
                    worker: progress.worker,
                    variant: progress.variant,
                    stages_run: progress.stages_run,
                });
            }
            let cost = entry.request.cost;
            if cost != Cost::ONE {
                shown.costs.push(RequestCost { index, cost });
            }
            if let Some(counts) = entry.evidence.as_ref().filter(|_| evidence) {
                shown.evidence_index.push(index);
                shown.evidence_counts.extend_from_slice(counts);
            }
        }
    }

    fn show_placed(&self, id: WorkerId, worker: &Worker, placed: &mut Placed) {
        let mut show = |members: &[_], variant: VariantId, batch: BatchId, state| {
            for entry in members.iter().filter_map(|&m| self.table.get(m)) {
                let r = &entry.request;
                placed.push(
                    r.id, r.app, r.arrival, r.deadline, id, variant, batch, state,
                );
            }
        };
        for running in worker.has() {
            let batch = &running.batch;
            show(
                &batch.members,
                batch.variant,
                batch.id,
                PlacedState::Running,
            );
        }
        for batch in &worker.queue {
            show(&batch.members, batch.variant, batch.id, PlacedState::Queued);
        }
        for lane in &worker.lanes {
            let (front, back) = lane.waiting.as_slices();
            show(front, lane.variant, BatchId(0), PlacedState::Lane);
            show(back, lane.variant, BatchId(0), PlacedState::Lane);
        }
    }

    // ---- applying the plan ------------------------------------------------------------

    fn apply(
        &mut self,
        now: Time,
        window: u64,
        by: &Arc<str>,
        checked: &CheckedPlan,
        rescue_only: bool,
    ) {
        let plan = checked.plan();
        let decided = |guard: &Guard, request| Decided {
            window,
            by: Arc::clone(guard.author(by, request)),
        };
        for &batch in &plan.revokes {
            if let Some(worker) = self.check.worker_of(batch) {
                self.revoke(now, worker, batch);
            }
        }
        for &id in &plan.rejects {
            let why = Outcome::Rejected(Rejection::ByPolicy);
            let decided = decided(&self.guard, id);
            self.end(now, id, why, Some((decided, None)));
        }
        for &id in &plan.answers {
            let in_time = self.in_time(now, id);
            let outcome = Outcome::ShortCircuited { in_time };
            let decided = decided(&self.guard, id);
            self.end(now, id, outcome, Some((decided, None)));
        }
        for (dispatch, members) in plan.batches() {
            // A checked batch has members.
            let decided = decided(&self.guard, members[0]);
            self.dispatch(dispatch, Members::from_slice(members), decided);
        }
        for route in &plan.routes {
            self.routes.install(route, &mut self.workers);
            self.may_start.extend(self.workers.ids());
            // Requests may wait in a lane whose `min_batch` has grown.
            self.lanes_due = Time::ZERO;
        }
        if self.draining && !plan.routes.is_empty() {
            self.waive_min_batches();
        }
        if !rescue_only {
            self.trigger.set_wake(now, plan.wake);
        }
    }

    fn revoke(&mut self, now: Time, worker: WorkerId, id: BatchId) {
        let queue = &mut self.workers[worker].queue;
        let at = queue.iter().position(|batch| batch.id == id);
        let batch = at.and_then(|at| queue.remove(at));
        if let Some(batch) = batch {
            // A revoke is no event for the policy that revoked.
            let before = *self.trigger.happened();
            self.give_back(now, batch);
            *self.trigger.happened() = before;
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch, members: Members, decided: Decided) {
        let batch = WorkerBatch {
            id: self.next_batch(),
            variant: dispatch.variant,
            from_stage: dispatch.from_stage,
            to_stage: dispatch.to_stage,
            exit: dispatch.exit,
            members,
            cost: Cost::ZERO,
            expected: Micros::ZERO,
            load: Micros::ZERO,
            decided,
            pinned: false,
            late: false,
        };
        for &id in &batch.members {
            self.table
                .set_state(id, RequestState::Queued(dispatch.worker, batch.id));
        }
        self.enqueue(dispatch.worker, dispatch.place, batch);
    }
}
