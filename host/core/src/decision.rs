//! The last windows with their plans: for explanations, and as trials of new policies.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::RequestId;
use crate::plan::Plan;
use crate::window::{Changes, Resident, Window};
use crate::worker::{WorkerRow, columns_of, undo};

/// One window, the plan that was applied, and the policy that made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The window.
    pub window: Window,
    /// The plan that was applied.
    pub plan: Plan,
    /// Label of the policy that made the plan.
    #[serde(with = "label")]
    pub by: Arc<str>,
    /// The window was opened for the native fallback; the active policy was not asked.
    pub rescue: bool,
}

/// The last decisions. The newest reuses the buffers of the oldest, so that a running scheduler
/// records without allocating, unless a reader still holds the oldest.
///
/// Workers are kept as their changes from one window to the next: the windows here show none, unless a driver
/// was told the decisions. [`Scheduler::decisions`](crate::Scheduler::decisions) shows them again.
#[derive(Debug)]
pub struct History {
    kept: VecDeque<KeptDecision>,
    capacity: usize,
    /// A decision that is not kept, for its buffers.
    spare: Option<Arc<Decision>>,
    spare_rows: Vec<WorkerRow>,
}

/// A decision, and the parts of its window that it shares with its neighbours.
#[derive(Debug)]
struct KeptDecision {
    decision: Arc<Decision>,
    workers: KeptWorkers,
}

/// The workers of a window that is kept.
#[derive(Debug, Default)]
pub(crate) struct KeptWorkers {
    /// Rows that changed since the window before, as they were there.
    pub(crate) before: Vec<WorkerRow>,
    /// Number of workers.
    pub(crate) count: usize,
    /// Present if the window showed them.
    pub(crate) residents: Option<Arc<[Resident]>>,
}

/// A shared label as a string.
mod label {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(label: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(label)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(from).map(Arc::from)
    }
}

// === impl History ===

impl History {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            kept: VecDeque::with_capacity(capacity),
            capacity,
            spare: None,
            spare_rows: Vec::new(),
        }
    }

    /// An empty decision with no other reference, and an empty list of rows. They have the buffers of the
    /// oldest decision once the history is full.
    pub(crate) fn buffers(&mut self) -> (Arc<Decision>, Vec<WorkerRow>) {
        let mut oldest = match self.kept.len() < self.capacity {
            true => None,
            false => self.spare.take().or_else(|| self.drop_oldest()),
        };
        let mut rows = std::mem::take(&mut self.spare_rows);
        rows.clear();
        crate::plan::trim(&mut rows);
        let Some(decision) = oldest.as_mut().and_then(Arc::get_mut) else {
            return (Arc::default(), rows);
        };
        decision.window.clear();
        decision.plan.clear();
        crate::plan::trim(&mut decision.window.completions);
        (oldest.unwrap_or_default(), rows)
    }

    fn drop_oldest(&mut self) -> Option<Arc<Decision>> {
        let oldest = self.kept.pop_front()?;
        self.spare_rows = oldest.workers.before;
        Some(oldest.decision)
    }

    pub(crate) fn record(&mut self, decision: Arc<Decision>, workers: KeptWorkers) {
        if self.capacity > 0 {
            self.kept.push_back(KeptDecision { decision, workers });
        } else {
            self.spare = Some(decision);
            self.spare_rows = workers.before;
        }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Decision>> {
        self.kept.iter().map(|kept| &kept.decision)
    }

    /// The decision of one window, if it is still kept.
    pub fn get(&self, window: u64) -> Option<&Arc<Decision>> {
        self.iter().rev().find(|d| d.window.id == window)
    }

    /// The last kept decision whose plan names a request, otherwise the last one that left it to wait.
    pub fn about(&self, request: RequestId) -> Option<&Arc<Decision>> {
        let names = |plan: &Plan| {
            let named = [&plan.members, &plan.rejects, &plan.answers];
            named.iter().any(|ids| ids.contains(&request))
        };
        let shows = |window: &Window| window.requests.id.contains(&request.0);
        let named = self.iter().rev().find(|d| names(&d.plan));
        named.or_else(|| self.iter().rev().find(|d| shows(&d.window)))
    }

    /// The decisions that `wanted` names with their workers, newest first. `rows` are those of the newest
    /// window.
    pub(crate) fn with_workers(
        &self,
        mut rows: Vec<WorkerRow>,
        mut wanted: impl FnMut(&Decision) -> bool,
    ) -> Vec<Arc<Decision>> {
        let mut found = Vec::new();
        for kept in self.kept.iter().rev() {
            rows.truncate(kept.workers.count);
            if wanted(&kept.decision) {
                found.push(kept.with_workers(&rows));
            }
            undo(&mut rows, &kept.workers.before);
        }
        found
    }
}

// === impl KeptDecision ===

impl KeptDecision {
    fn with_workers(&self, rows: &[WorkerRow]) -> Arc<Decision> {
        let window = &self.decision.window;
        if !window.workers.up.is_empty() {
            return Arc::clone(&self.decision);
        }
        let mut whole = Decision::clone(&self.decision);
        whole.window.workers = columns_of(rows, window.now);
        whole.window.changes = Changes::default();
        if let Some(residents) = &self.workers.residents {
            whole.window.residents = residents.to_vec();
        }
        Arc::new(whole)
    }
}
