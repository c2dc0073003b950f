//! Builds a [`WorkerQueue`] per worker from the window and the kept state.

use switchyard_sdk::window::{Placed, PlacedState};
use switchyard_sdk::{BatchId, PlanBuilder, RequestRef, Window, WorkerRef};

use crate::models::CostTable;
use crate::queue::{EntryState, QueueEntry, RunLength, WorkerQueue};
use crate::score::ScoreRule;
use crate::state::MaelState;

/// One queue per worker, in the catalog's order.
pub(crate) fn queues(
    window: &Window,
    plan: &PlanBuilder,
    models: &CostTable,
    state: &MaelState,
    rule: Option<ScoreRule>,
) -> Vec<WorkerQueue> {
    let queue = |worker: WorkerRef<'_>| WorkerQueue {
        worker: worker.id(),
        is_up: worker.is_up(),
        room: plan.room(worker.id()),
        busy_us: worker.busy_until_us().saturating_sub(window.now_us()),
        runs_long: false,
        order: Vec::new(),
    };
    let mut queues: Vec<WorkerQueue> = window.workers().map(queue).collect();
    let mut rests: Vec<(usize, QueueEntry)> = Vec::new();
    let rows: Vec<Placed> = window.placed().collect();
    for batch in
        rows.chunk_by(|a, b| a.batch.is_some() && (a.worker, a.batch) == (b.worker, b.batch))
    {
        let (first, at) = (&batch[0], batch[0].worker.index());
        match first.state {
            // Lanes belong to another policy and end with it.
            PlacedState::Lane => {}
            PlacedState::Running => {
                let cost = models.of_variant(first.app, first.worker, first.variant);
                let range = state.ranges.get(&first.id);
                let stages = window.catalog().variant(first.variant).stages;
                match range.filter(|range| range.to < stages) {
                    Some(range) => rests.push((at, rest(window, first, range.to))),
                    None => {
                        let is_cut = cost.is_some_and(|cost| !cost.slices.is_empty());
                        queues[at].runs_long = is_cut && range.is_none_or(|range| range.from == 0);
                    }
                }
            }
            PlacedState::Queued => queues[at]
                .order
                .extend(queued(window, models, state, batch)),
        }
    }
    // The rest of a running task goes to the position it would get if it were pending.
    for (at, entry) in rests {
        let place = rule.map_or(0, |rule| queues[at].best_position(rule, &entry));
        queues[at].order.insert(place, entry);
    }
    queues
}

/// A request's entry with no work.
fn entry(window: &Window, row: &Placed) -> QueueEntry {
    QueueEntry {
        id: row.id,
        work_us: 0,
        age_us: window.now_us().saturating_sub(row.arrival_us),
        slo_us: row.deadline_us.saturating_sub(row.arrival_us),
        state: EntryState::Running,
        length: RunLength::Begun,
    }
}

/// The rest of a task after its running slice.
fn rest(window: &Window, row: &Placed, from: u32) -> QueueEntry {
    let entry = entry(window, row);
    QueueEntry {
        work_us: stages_us(window, row, from),
        ..entry
    }
}

/// The entry of a waiting batch.
fn queued(
    window: &Window,
    models: &CostTable,
    state: &MaelState,
    batch: &[Placed],
) -> Option<QueueEntry> {
    let first = &batch[0];
    let entry = entry(window, first);
    let queued = |mine| first.batch.map(|batch| EntryState::Queued { batch, mine });
    let Some(range) = state.ranges.get(&first.id) else {
        // Of another policy: assume all stages.
        let variant = window.catalog().variant(first.variant);
        let whole = window
            .catalog()
            .latencies_us(first.worker, first.variant, variant.last_exit());
        let work_us = whole.get(batch.len() - 1).or(whole.last());
        return Some(QueueEntry {
            work_us: work_us.copied().unwrap_or(0),
            state: queued(false)?,
            length: RunLength::Short,
            ..entry
        });
    };
    let stages = window.catalog().variant(first.variant).stages;
    let cost = models.of_variant(first.app, first.worker, first.variant);
    let cost = cost.filter(|cost| !cost.slices.is_empty());
    let (work_us, length) = match (cost, range.from) {
        (Some(cost), 0) if range.to < stages => (cost.sliced_us(), RunLength::Sliced),
        (Some(cost), 0) => (cost.latency_us, RunLength::Long),
        (None, 0) => (stages_us(window, first, 0), RunLength::Short),
        _ => (stages_us(window, first, range.from), RunLength::Begun),
    };
    Some(QueueEntry {
        work_us,
        state: queued(true)?,
        length,
        ..entry
    })
}

/// Latency from a stage to the end. The profile has all stages in one row; a rest is a sum of
/// stages.
fn stages_us(window: &Window, row: &Placed, from: u32) -> u64 {
    let variant = window.catalog().variant(row.variant);
    let exit = Some(variant.last_exit());
    let of_rest =
        window
            .catalog()
            .run_latencies_us(row.worker, row.variant, from, variant.stages, exit);
    of_rest.first().copied().unwrap_or(0)
}

/// Marks entries that are on another worker than in the host's queues, or behind an entry that they
/// preceded there. `hosts` are the queues of the window.
pub(crate) fn mark_moved(queues: &mut [WorkerQueue], hosts: &[WorkerQueue]) {
    let mut places: Vec<(BatchId, usize, usize)> = Vec::new();
    for (worker, queue) in hosts.iter().enumerate() {
        let batches = queue
            .order
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| match entry.state {
                EntryState::Queued { batch, .. } => Some((batch, worker, at)),
                _ => None,
            });
        places.extend(batches);
    }
    for (worker, queue) in queues.iter_mut().enumerate() {
        let mut last = None;
        for entry in &mut queue.order {
            let EntryState::Queued { batch, .. } = entry.state else {
                continue;
            };
            let Some(&(_, from, at)) = places.iter().find(|place| place.0 == batch) else {
                continue;
            };
            if from == worker && Some(at) > last {
                last = Some(at);
            } else {
                let from = hosts[from].worker;
                entry.state = EntryState::Moved { batch, from };
            }
        }
    }
}

/// The entry of a pending request with its work on the worker of the queue.
pub(crate) fn pending(request: RequestRef<'_>, work_us: u64, length: RunLength) -> QueueEntry {
    QueueEntry {
        id: request.id(),
        work_us,
        age_us: request.age_us(),
        slo_us: request.deadline_us().saturating_sub(request.arrival_us()),
        state: EntryState::Pending(request.index()),
        length,
    }
}
