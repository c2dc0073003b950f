//! The last windows with their plans: for explanations, and as trials of new policies.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::RequestId;
use crate::plan::Plan;
use crate::window::Window;

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
#[derive(Debug)]
pub struct History {
    kept: VecDeque<Arc<Decision>>,
    capacity: usize,
    /// A decision that is not kept, for its buffers.
    spare: Option<Arc<Decision>>,
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
        }
    }

    /// An empty decision with no other reference. It has the buffers of the oldest one once the
    /// history is full.
    pub(crate) fn buffers(&mut self) -> Arc<Decision> {
        let mut oldest = match self.kept.len() < self.capacity {
            true => None,
            false => self.spare.take().or_else(|| self.kept.pop_front()),
        };
        let Some(decision) = oldest.as_mut().and_then(Arc::get_mut) else {
            return Arc::default();
        };
        decision.window.clear();
        decision.plan.clear();
        crate::plan::trim(&mut decision.window.completions);
        oldest.unwrap_or_default()
    }

    pub(crate) fn record(&mut self, decision: Arc<Decision>) {
        if self.capacity > 0 {
            self.kept.push_back(decision);
        } else {
            self.spare = Some(decision);
        }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Decision>> {
        self.kept.iter()
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
}
