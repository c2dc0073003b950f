//! Requests that the host starts, not the policy: those whose client pinned the variant, and those
//! that the policy left to wait for too long. They wait by variant in the order of their deadlines
//! until a worker takes a batch of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{RequestId, VariantId, WorkerId};
use crate::residents::{SOON_MAX, Soon};
use crate::time::Time;
use crate::worker::Members;

/// The properties that the requests of one batch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeldKey {
    pub(crate) variant: VariantId,
    /// Stages that they have run.
    pub(crate) from_stage: u32,
    /// The only worker that can go on with them, if they have run stages.
    pub(crate) on: Option<WorkerId>,
}

/// All requests that the host holds.
#[derive(Debug, Default)]
pub(crate) struct HeldRequests {
    lines: BTreeMap<HeldKey, HeldLine>,
    by_request: BTreeMap<RequestId, (HeldKey, Time)>,
}

/// The requests of one key by deadline. A line is never empty.
#[derive(Debug)]
struct HeldLine {
    waiting: BTreeSet<(Time, RequestId)>,
    /// The worker that was free first when the last of them came: it loads the variant ahead.
    /// None: no worker that can run them was up.
    soon_on: Option<WorkerId>,
}

// === impl HeldRequests ===

impl HeldRequests {
    pub(crate) fn len(&self) -> usize {
        self.by_request.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_request.is_empty()
    }

    /// The properties of the requests that are here, each once.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &HeldKey> {
        self.lines.keys()
    }

    /// Takes a request in. `soon_on` is the worker that will probably run it, if one is up.
    pub(crate) fn insert(
        &mut self,
        key: HeldKey,
        deadline: Time,
        id: RequestId,
        soon_on: Option<WorkerId>,
    ) {
        self.remove(id);
        let line = self.lines.entry(key).or_insert_with(|| HeldLine {
            waiting: BTreeSet::new(),
            soon_on,
        });
        line.soon_on = soon_on;
        line.waiting.insert((deadline, id));
        self.by_request.insert(id, (key, deadline));
    }

    /// Lets a request go, if it is here.
    pub(crate) fn remove(&mut self, id: RequestId) {
        let Some((key, deadline)) = self.by_request.remove(&id) else {
            return;
        };
        if let Some(line) = self.lines.get_mut(&key) {
            line.waiting.remove(&(deadline, id));
            if line.waiting.is_empty() {
                self.lines.remove(&key);
            }
        }
    }

    /// The key with the earliest deadline among those that a worker `can` run.
    pub(crate) fn first_for(&self, can: impl Fn(&HeldKey) -> bool) -> Option<HeldKey> {
        let able = self.lines.iter().filter(|(key, _)| can(key));
        let first = able.min_by_key(|(_, line)| line.waiting.first().copied());
        first.map(|(&key, _)| key)
    }

    /// Takes the requests with the earliest deadlines out of a line, at most `size`.
    pub(crate) fn take(&mut self, key: HeldKey, size: u32) -> Members {
        let line = self.lines.get(&key);
        let waiting = line.iter().flat_map(|line| &line.waiting);
        let members: Members = waiting.take(size as usize).map(|&(_, id)| id).collect();
        members.iter().for_each(|&id| self.remove(id));
        members
    }

    /// The requests that are here, with the properties that their batches share.
    pub(crate) fn all(&self) -> impl Iterator<Item = (RequestId, &HeldKey)> {
        self.by_request.iter().map(|(&id, (key, _))| (id, key))
    }

    /// Adds the variants that this worker will probably run for the host, behind those of `soon`.
    pub(crate) fn add_soon(&self, worker: WorkerId, soon: &mut Soon) {
        let lines = self.lines.iter();
        let lines = lines.filter(|(_, line)| line.soon_on == Some(worker));
        let mut variants: Vec<_> = lines
            .map(|(key, line)| (line.waiting.first().copied(), key.variant))
            .collect();
        variants.sort_unstable();
        for (_, variant) in variants {
            if soon.len() < SOON_MAX && !soon.contains(&variant) {
                soon.push(variant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(variant: u32) -> HeldKey {
        HeldKey {
            variant: VariantId(variant),
            from_stage: 0,
            on: None,
        }
    }

    #[test]
    fn batches_are_taken_by_deadline_from_one_line() {
        let mut held = HeldRequests::default();
        for (id, variant, deadline) in [(1, 0, 30), (2, 0, 10), (3, 1, 20), (4, 0, 20)] {
            let soon_on = Some(WorkerId(0));
            held.insert(key(variant), Time(deadline), RequestId(id), soon_on);
        }
        assert_eq!(held.first_for(|_| true), Some(key(0)));
        assert_eq!(held.take(key(0), 2)[..], [RequestId(2), RequestId(4)]);
        assert_eq!(held.first_for(|_| true), Some(key(1)));
        assert_eq!(held.first_for(|key| key.variant.0 == 0), Some(key(0)));
        held.remove(RequestId(3));
        held.remove(RequestId(3));
        assert_eq!((held.len(), held.lines.len()), (1, 1));
        let mut soon = Soon::new();
        held.add_soon(WorkerId(1), &mut soon);
        assert!(soon.is_empty());
        held.add_soon(WorkerId(0), &mut soon);
        assert_eq!(soon[..], [VariantId(0)]);
    }
}
