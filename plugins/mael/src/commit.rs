//! Writes the queues into a plan: launches, held requests, revokes.

use switchyard_sdk::window::{Placed, Progress};
use switchyard_sdk::{PlanBuilder, Reason, RequestId, VariantId, Window};

use crate::models::CostTable;
use crate::queue::{EntryState, QueueEntry, RunLength, WorkerQueue};
use crate::state::{MaelState, StageRange};

/// Writes one plan.
pub(crate) struct PlanWriter<'a> {
    pub(crate) window: Window<'a>,
    pub(crate) models: &'a CostTable,
    /// SliceMode at the start of this window.
    pub(crate) slices: bool,
    /// Reason of the new tasks' mapping.
    pub(crate) how: &'static str,
}

/// The next launch of a request.
struct NextLaunch {
    id: RequestId,
    variant: VariantId,
    range: StageRange,
    /// Number of stages of the variant.
    stages: u32,
}

// === impl PlanWriter ===

impl PlanWriter<'_> {
    /// Writes the queues into a plan. Only the last slice of a task may have entries queued behind
    /// it: the worker starts its next batch before the policy can queue the next slice. Later
    /// entries are held, unless their deadlines have passed: the host counts late pending requests
    /// as starved.
    ///
    /// Returns whether launches are left for a later window.
    pub(crate) fn apply(
        &self,
        queues: &[WorkerQueue],
        state: &mut MaelState,
        plan: &mut PlanBuilder,
    ) -> bool {
        state.held.clear();
        let reaches: Vec<usize> = queues
            .iter()
            .map(|queue| self.reach(queue, state))
            .collect();
        for (queue, &reach) in queues.iter().zip(&reaches) {
            for (at, entry) in queue.order.iter().enumerate() {
                let is_held = at >= reach && !entry.is_overdue();
                match entry.state {
                    EntryState::Moved { batch, from } => plan.revoke(from, batch),
                    EntryState::Queued { batch, mine: true } if is_held => {
                        plan.revoke(queue.worker, batch);
                    }
                    EntryState::Pending(_) => {}
                    EntryState::Queued { .. } | EntryState::Running => continue,
                }
                if is_held {
                    state.ranges.remove(&entry.id);
                    state.held.push((queue.worker, entry.id));
                }
            }
        }
        let mut is_left = !state.held.is_empty();
        for (queue, &reach) in queues.iter().zip(&reaches) {
            let mut can_park = self.can_park(queue, state);
            let mut place = 0;
            for (at, entry) in queue.order.iter().enumerate() {
                let is_held = at >= reach && !entry.is_overdue();
                match entry.state {
                    EntryState::Running => {}
                    EntryState::Queued { mine, .. } => place += u32::from(!mine || !is_held),
                    EntryState::Pending(_) | EntryState::Moved { .. } if is_held => {}
                    EntryState::Pending(_) | EntryState::Moved { .. } => {
                        let launch = self.next_launch(entry, queue, state, can_park > 0);
                        let taken = launch
                            .filter(|launch| self.dispatch(launch, entry, queue, place, plan));
                        is_left |= taken.is_none();
                        state.ranges.remove(&entry.id);
                        if let Some(launch) = taken {
                            state.ranges.insert(launch.id, launch.range);
                            can_park -= u32::from(launch.is_first() && launch.has_more());
                            place += 1;
                        }
                    }
                }
            }
        }
        is_left
    }

    /// The number of entries that can be queued: up to the first slice that is not its task's last.
    fn reach(&self, queue: &WorkerQueue, state: &MaelState) -> usize {
        let has_more = queue.order.iter().position(|entry| match entry.state {
            EntryState::Running => true,
            // Fast path: most entries are not sliced, and queues may be long.
            EntryState::Queued { .. }
                if matches!(entry.length, RunLength::Short | RunLength::Long) =>
            {
                false
            }
            EntryState::Queued { .. } => {
                let range = state.ranges.get(&entry.id);
                let row = self.row(entry.id);
                range
                    .zip(row)
                    .is_some_and(|(range, row)| range.to < self.stages(row.variant))
            }
            EntryState::Pending(_) | EntryState::Moved { .. } => {
                let launch = self.next_launch(entry, queue, state, true);
                launch.is_some_and(|launch| launch.has_more())
            }
        });
        has_more.map_or(queue.order.len(), |at| at + 1)
    }

    fn row(&self, id: RequestId) -> Option<Placed> {
        self.window.placed().find(|row| row.id == id)
    }

    fn stages(&self, variant: VariantId) -> u32 {
        self.window.catalog().variant(variant).stages
    }

    /// The number of requests that the worker can still park.
    fn can_park(&self, queue: &WorkerQueue, state: &MaelState) -> u32 {
        let worker = self.window.worker(queue.worker);
        let coming = self.window.placed().filter(|row| {
            let range = state.ranges.get(&row.id);
            let parks = |p: &StageRange| p.from == 0 && p.to < self.stages(row.variant);
            row.worker == queue.worker && range.is_some_and(parks)
        });
        let limit = self.window.catalog().worker(queue.worker).parked_max;
        limit.saturating_sub(worker.parked() + coming.count() as u32)
    }

    /// The next launch of an entry.
    fn next_launch(
        &self,
        entry: &QueueEntry,
        queue: &WorkerQueue,
        state: &MaelState,
        can_park: bool,
    ) -> Option<NextLaunch> {
        let (cost, from) = match entry.state {
            EntryState::Pending(index) => {
                let request = self.window.request(index);
                let (app, accuracy) = (request.app(), request.min_quality());
                match request.progress() {
                    Some(Progress {
                        variant,
                        stages_run,
                        ..
                    }) => (
                        self.models.of_variant(app, queue.worker, variant)?,
                        stages_run,
                    ),
                    None => (self.models.preferred(app, queue.worker, accuracy)?, 0),
                }
            }
            _ => {
                let row = self.row(entry.id)?;
                let from = state.ranges.get(&entry.id).map_or(0, |range| range.from);
                (
                    self.models.of_variant(row.app, queue.worker, row.variant)?,
                    from,
                )
            }
        };
        let stages = self.stages(cost.variant);
        let cut = cost
            .next_cut(from)
            .filter(|_| self.slices && (can_park || from > 0));
        let to = cut.map_or(stages, |cut| cut.to_stage);
        Some(NextLaunch {
            id: entry.id,
            variant: cost.variant,
            range: StageRange { from, to },
            stages,
        })
    }

    /// Adds a launch to the plan; false if the queue is full.
    fn dispatch(
        &self,
        launch: &NextLaunch,
        entry: &QueueEntry,
        queue: &WorkerQueue,
        place: u32,
        plan: &mut PlanBuilder,
    ) -> bool {
        let batch = plan
            .run(queue.worker, launch.variant)
            .resume(launch.range.from)
            .place(place);
        let (batch, why) = match (launch.has_more(), launch.is_first()) {
            (true, _) => (batch.park_after(launch.range.to), "slice"),
            (false, true) => (batch, self.how),
            (false, false) => (batch, "rest"),
        };
        let why = Reason::new(why)
            .with("work_us", entry.work_us)
            .with("waited_us", entry.age_us)
            .with("slo_us", entry.slo_us);
        batch.because(why).requests([launch.id]) > 0
    }
}

// === impl NextLaunch ===

impl NextLaunch {
    /// Whether more slices of the task follow.
    fn has_more(&self) -> bool {
        self.range.to < self.stages
    }

    fn is_first(&self) -> bool {
        self.range.from == 0
    }
}
