//! Batches that are left to a busy worker, because it would end them sooner than a worker with room.
//!
//! A slow worker is often idle when a fast one has no room. Such a batch stays pending until the fast one
//! has room, and counts as its work for the rest of the plan.

use super::merit::Merit;
use super::{EarliestDeadlineFirst, FallbackChoice, LEFT_MAX};
use crate::ids::{AppId, WorkerId};
use crate::plan::Plan;
use crate::time::{Micros, Time};
use crate::window::{IDLE, Window};

impl EarliestDeadlineFirst {
    /// Finds the workers without room whose batches are on time.
    pub(super) fn look_at_busy(&mut self, window: &Window) {
        self.left = 0;
        self.first_busy.clear();
        // Workers of one class do not differ in speed, and one with room is mostly the first free.
        let classes = self.menu.classes();
        self.trusted_until.clear();
        if classes < 2 {
            return;
        }
        let mut trusted = std::mem::take(&mut self.trusted_until);
        trusted.extend((0..self.room.len()).map(|at| self.trust(window, at)));
        self.trusted_until = trusted;
        for class in 0..classes {
            let first = self.first_busy_of(class, window.now);
            self.first_busy.push(first);
        }
    }

    /// Until when the batches of a worker may run as predicted. In the past: never.
    fn trust(&self, window: &Window, at: usize) -> Time {
        let workers = &window.workers;
        let running = workers.running_variant[at];
        if self.room[at] > 0 || workers.up[at] == 0 || running == IDLE {
            return Time::ZERO;
        }
        let class = self.menu.class_of(WorkerId(at as u32));
        let longest = self.menu.longest(self.menu.kind(class), running);
        let since = Time(workers.running_since[at]);
        let expected = since + self.slowdown(class).of(longest);
        expected.min(Time(workers.busy_until[at]))
    }

    fn first_busy_of(&self, class: usize, now: Time) -> Option<WorkerId> {
        let workers = self.menu.workers(class).iter().copied();
        let busy = workers.filter(|worker| self.trusted_until[worker.index()] > now);
        busy.min_by_key(|worker| (self.free_at[worker.index()], *worker))
    }

    /// The choice that leaves a request to a busy worker, if that ends it in time and sooner than the
    /// best worker with room.
    pub(super) fn leave(
        &self,
        window: &Window,
        i: usize,
        with_room: Merit,
    ) -> Option<FallbackChoice> {
        if self.left >= LEFT_MAX {
            return None;
        }
        let deadline = Time(window.requests.deadline[i]);
        let (busy, choice) = self.best_of(window, i, &self.first_busy)?;
        let is_sooner = busy.end < with_room.end && busy.end <= deadline;
        (is_sooner && busy.is_better_than(with_room)).then_some(choice)
    }

    /// Counts a batch as the work of the busy worker that it is left to.
    pub(super) fn leave_to(
        &mut self,
        window: &Window,
        app: AppId,
        choice: FallbackChoice,
        plan: &mut Plan,
    ) {
        let before = plan.members.len();
        let latency = self.fill(window, app, choice, &mut plan.members);
        plan.members.truncate(before);
        let worker = choice.worker;
        self.free_at[worker.index()] += latency;
        self.left += 1;
        let class = self.menu.class_of(worker);
        self.first_busy[class] = self.first_busy_of(class, window.now);
        // If the worker is late, its requests go elsewhere.
        let late = self.trusted_until[worker.index()] + Micros(1);
        plan.wake = Some(plan.wake.map_or(late, |wake| wake.min(late)));
    }
}
