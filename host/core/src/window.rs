//! Windows: columns of numbers that a policy sees, built for each window into the same buffers.

use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::estimate::Slowdown;
use crate::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use crate::time::{Micros, Time};

/// `Workers::running_variant` of an idle worker.
pub const IDLE: u32 = u32::MAX;

/// One scheduling window. Columns of one struct have equal lengths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Counts up from 1.
    pub id: u64,
    /// The time it was opened.
    pub now: Time,
    /// Causes of the window.
    pub because: Causes,
    /// Pending requests, oldest arrival first. After an overrun only those due first, in this order.
    pub requests: Requests,
    /// Workers, in the catalog's order.
    pub workers: Workers,
    /// The workers that changed since the window before. No part of recordings.
    #[serde(skip)]
    pub changes: Changes,
    /// Running and waiting requests, worker by worker in running order (if wanted).
    pub placed: Placed,
    /// Which worker holds which variant (if wanted).
    pub residents: Vec<Resident>,
    /// Requests per second per app over the last 500 ms.
    pub arrival_rate: Vec<f64>,
    /// Observed over profiled latency by kind of workers; empty while predictions keep to the
    /// profile. `busy_until` and `free_at` contain it.
    pub slowdown: Vec<Slowdown>,
    /// Requests that ended since the last window (if wanted).
    pub completions: Vec<Completion>,
}

/// The causes of a window; several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// The policy's period is over.
    pub periodic: bool,
    /// A request became pending.
    pub arrival: bool,
    /// A worker has nothing running and nothing queued.
    pub worker_idle: bool,
    /// A batch finished.
    pub completion: bool,
    /// Evidence became ready.
    pub evidence: bool,
    /// A plan asked for this time.
    pub wake: bool,
    /// The first window after the policy or the catalog changed.
    pub changed: bool,
    /// A worker went away or came back.
    pub workers: bool,
}

/// Pending requests as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Request ids.
    #[serde(with = "deltas")]
    pub id: Vec<u64>,
    /// App indices.
    pub app: Vec<u32>,
    /// Arrival times in microseconds.
    #[serde(with = "deltas")]
    pub arrival: Vec<u64>,
    /// Deadlines in microseconds.
    #[serde(with = "deltas")]
    pub deadline: Vec<u64>,
    /// 0 = unspecified, 1 = highest, larger = lower.
    pub priority: Vec<u32>,
    /// Least accuracy asked for, 0 when none.
    pub min_accuracy: Vec<f32>,
    /// Requests that have run some stages.
    pub progress: Vec<RequestProgress>,
    /// Requests that cost another time than those of the profile.
    pub costs: Vec<RequestCost>,
    /// Positions of requests whose evidence is ready, ascending (if wanted).
    pub evidence_index: Vec<u32>,
    /// For each of them one count per class of its app (if wanted).
    pub evidence_counts: Vec<u32>,
}

/// A partly run request in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestProgress {
    /// Position in the columns.
    pub index: u32,
    /// The worker that holds its activations.
    pub worker: WorkerId,
    /// The variant it must go on with.
    pub variant: VariantId,
    /// Stages it has run.
    pub stages_run: u32,
}

/// The cost of a request in a window, where it is not 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCost {
    /// Position in the columns.
    pub index: u32,
    /// The cost.
    pub cost: Cost,
}

/// Workers as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workers {
    /// When the batches that the worker has are expected to end, in microseconds; at most `now` when it
    /// has none. A worker that may be sent one more shows as idle before that. Readers take a time that has
    /// passed for `now`.
    pub busy_until: Vec<u64>,
    /// When the queued batches are expected to end as well, in microseconds; read alike.
    pub free_at: Vec<u64>,
    /// When the running batch began, in microseconds; 0 when idle.
    pub running_since: Vec<u64>,
    /// Variant of the running batch, [`IDLE`] when there is none.
    pub running_variant: Vec<u32>,
    /// Batches in the queue.
    pub queued: Vec<u32>,
    /// Requests parked on the worker.
    pub parked: Vec<u32>,
    /// Bytes not taken by resident variants.
    pub free_memory: Vec<u64>,
    /// 0 when the worker is away.
    pub up: Vec<u8>,
    /// Lives of the worker so far, from 1 on: one more each time that it comes back without its
    /// resident variants and parked requests.
    pub incarnation: Vec<u32>,
}

/// How the workers' columns of a scheduler's window came to be, for readers who hold an earlier one. No part of a
/// window's content: any two are equal.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Number of the earlier window; 0: every worker may be another.
    pub since: u64,
    /// Workers that are not as in that window, ascending. A time that has passed counts as `now`: it moves on
    /// without a change.
    pub workers: Vec<WorkerId>,
    /// Times that have passed stand where recordings show `now`.
    pub has_past_times: bool,
}

/// Requests that are not pending, as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// Request ids.
    #[serde(with = "deltas")]
    pub id: Vec<u64>,
    /// App indices.
    pub app: Vec<u32>,
    /// Arrival times in microseconds.
    #[serde(with = "deltas")]
    pub arrival: Vec<u64>,
    /// Deadlines in microseconds.
    #[serde(with = "deltas")]
    pub deadline: Vec<u64>,
    /// Worker indices.
    pub worker: Vec<u32>,
    /// Variant indices.
    pub variant: Vec<u32>,
    /// Batch ids, 0 in a lane.
    #[serde(with = "deltas")]
    pub batch: Vec<u64>,
    /// 0 in a lane, 1 queued, 2 running.
    pub state: Vec<u8>,
}

/// A variant that a worker holds in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// The worker.
    pub worker: WorkerId,
    /// The variant it holds.
    pub variant: VariantId,
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The request.
    pub id: RequestId,
    /// Its app.
    pub app: AppId,
    /// How it ended.
    pub end: End,
    /// The variant that answered, if one did.
    pub variant: Option<VariantId>,
    /// The exit that answered, if one did.
    pub exit: Option<ExitId>,
    /// From arrival to the end.
    pub latency: Micros,
}

/// How a request ended, as windows show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Answered before its deadline.
    InTime,
    /// Answered after it.
    Late,
    /// Rejected by the policy or by a bound.
    Rejected,
    /// Dropped after its deadline.
    Dropped,
    /// The executor failed it.
    Failed,
    /// The client went away.
    Cancelled,
}

/// State of a row of [`Placed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PlacedState {
    /// Waits in a lane.
    Lane = 0,
    /// In a batch that waits in a worker's queue.
    Queued = 1,
    /// In the running batch.
    Running = 2,
}

/// Serializes a column of growing numbers as the steps between them. The steps are small, and a
/// recording repeats a request in every window in which it waits.
mod deltas {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(column: &[u64], to: S) -> Result<S::Ok, S::Error> {
        let before = std::iter::once(&0).chain(column);
        let steps = column.iter().zip(before);
        to.collect_seq(steps.map(|(value, before)| value.wrapping_sub(*before).cast_signed()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
        let steps = Vec::<i64>::deserialize(from)?;
        let mut value = 0_u64;
        let values = steps.into_iter().map(|step| {
            value = value.wrapping_add(step.cast_unsigned());
            value
        });
        Ok(values.collect())
    }
}

impl Changes {
    fn clear(&mut self) {
        self.since = 0;
        self.workers.clear();
        self.has_past_times = false;
    }
}

impl PartialEq for Changes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

// === impl Window ===

impl Window {
    /// Number of pending requests.
    pub fn len(&self) -> usize {
        self.requests.id.len()
    }

    /// Nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.requests.id.is_empty()
    }

    /// Empties every column and keeps the buffers.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.workers.clear();
        self.changes.clear();
        self.placed.clear();
        self.residents.clear();
        self.arrival_rate.clear();
        self.slowdown.clear();
        self.completions.clear();
        self.because = Causes::default();
    }
}

impl Causes {
    /// At least one cause holds.
    pub fn any(self) -> bool {
        self != Self::default()
    }

    /// Names of those that hold, as the contract has them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let named = [
            (self.periodic, "periodic"),
            (self.arrival, "arrival"),
            (self.worker_idle, "worker-idle"),
            (self.completion, "completion"),
            (self.evidence, "evidence"),
            (self.wake, "wake"),
            (self.changed, "changed"),
            (self.workers, "workers"),
        ];
        named
            .into_iter()
            .filter_map(|(holds, name)| holds.then_some(name))
    }
}

impl Requests {
    /// The cost of the request at this position.
    pub fn cost(&self, position: usize) -> Cost {
        let costs = &self.costs;
        let at = costs.binary_search_by_key(&position, |cost| cost.index as usize);
        at.map_or(Cost::ONE, |at| costs[at].cost)
    }

    /// The costs of all requests, in their order.
    pub fn costs_of_all(&self) -> impl Iterator<Item = Cost> {
        let mut stated = self.costs.iter().peekable();
        (0..self.id.len()).map(move |row| {
            let own = stated.next_if(|cost| cost.index as usize == row);
            own.map_or(Cost::ONE, |own| own.cost)
        })
    }

    /// Adds at most `count` rows of `from`, those with the earliest deadlines, without their progress
    /// and evidence.
    pub(crate) fn copy_due_first(&mut self, from: &Self, count: usize) {
        if from.id.len() <= count {
            return self.copy_columns(from);
        }
        let mut deadlines = from.deadline.clone();
        let last = *deadlines.select_nth_unstable(count).1;
        let mut at_last = count - from.deadline.iter().filter(|&&d| d < last).count();
        for (row, &deadline) in from.deadline.iter().enumerate() {
            if deadline > last || deadline == last && at_last == 0 {
                continue;
            }
            at_last -= usize::from(deadline == last);
            self.id.push(from.id[row]);
            self.app.push(from.app[row]);
            self.arrival.push(from.arrival[row]);
            self.deadline.push(deadline);
            self.priority.push(from.priority[row]);
            self.min_accuracy.push(from.min_accuracy[row]);
        }
    }

    fn copy_columns(&mut self, from: &Self) {
        self.id.extend_from_slice(&from.id);
        self.app.extend_from_slice(&from.app);
        self.arrival.extend_from_slice(&from.arrival);
        self.deadline.extend_from_slice(&from.deadline);
        self.priority.extend_from_slice(&from.priority);
        self.min_accuracy.extend_from_slice(&from.min_accuracy);
    }

    fn clear(&mut self) {
        self.id.clear();
        self.app.clear();
        self.arrival.clear();
        self.deadline.clear();
        self.priority.clear();
        self.min_accuracy.clear();
        self.progress.clear();
        self.costs.clear();
        self.evidence_index.clear();
        self.evidence_counts.clear();
    }
}

impl Workers {
    fn clear(&mut self) {
        self.busy_until.clear();
        self.free_at.clear();
        self.running_since.clear();
        self.running_variant.clear();
        self.queued.clear();
        self.parked.clear();
        self.free_memory.clear();
        self.up.clear();
        self.incarnation.clear();
    }
}

impl Placed {
    fn clear(&mut self) {
        self.id.clear();
        self.app.clear();
        self.arrival.clear();
        self.deadline.clear();
        self.worker.clear();
        self.variant.clear();
        self.batch.clear();
        self.state.clear();
    }

    /// Adds one row.
    #[allow(clippy::too_many_arguments)] // One argument per column.
    pub fn push(
        &mut self,
        id: RequestId,
        app: AppId,
        arrival: Time,
        deadline: Time,
        worker: WorkerId,
        variant: VariantId,
        batch: BatchId,
        state: PlacedState,
    ) {
        self.id.push(id.0);
        self.app.push(app.0);
        self.arrival.push(arrival.0);
        self.deadline.push(deadline.0);
        self.worker.push(worker.0);
        self.variant.push(variant.0);
        self.batch.push(batch.0);
        self.state.push(state as u8);
    }
}
