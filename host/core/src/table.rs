//! Every accepted request that has not ended, and where it is.

use std::collections::{BTreeSet, VecDeque};

use crate::catalog::Late;
use crate::ids::{AppId, BatchId, RequestId, WorkerId};
use crate::pending::PendingRequests;
use crate::request::{Evidence, Progress, Request};
use crate::time::Time;
use crate::window::Requests;

/// Live requests by id. Ids only grow, so this is a ring from the oldest live request to the
/// newest: constant-time look-up, iteration in arrival order, no hashing.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    /// Id of `slots[0]`.
    base: u64,
    slots: VecDeque<Option<RequestEntry>>,
    live: usize,
    /// The live requests in [`RequestState::Pending`].
    pending: PendingRequests,
    /// Deadlines of the waiting requests that end there.
    expiries: BTreeSet<(Time, RequestId)>,
    /// By app: deadlines of the pending requests that the host guards.
    guarded: Vec<BTreeSet<(Time, RequestId)>>,
}

/// One live request.
#[derive(Debug)]
pub(crate) struct RequestEntry {
    pub(crate) request: Request,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) progress: Option<Progress>,
    state: RequestState,
    late: Late,
    index: DeadlineIndex,
    /// It left a batch that would have answered it late, and is pending again. The next time it
    /// ends.
    pub(crate) left_batch: bool,
    /// It runs although the profile says that it will be late, to learn whether it will.
    pub(crate) probe: bool,
}

/// The index of deadlines that holds a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeadlineIndex {
    None,
    Expiries,
    Guarded,
}

/// Where a live request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// Shown to the policy in windows.
    Pending,
    /// Waits in a lane of this worker.
    Lane(WorkerId),
    /// In a batch that waits.
    Queued(WorkerId, BatchId),
    /// In the running batch.
    Running(WorkerId, BatchId),
    /// Cannot be answered in time; waits until nothing else does.
    Late,
}

// === impl RequestTable ===

impl RequestTable {
    /// Takes a request in. False when the id was used before or is not the newest.
    pub(crate) fn insert(&mut self, request: Request, late: Late) -> bool {
        let id = request.id;
        if self.slots.is_empty() {
            if id.0 < self.base {
                return false;
            }
            self.base = id.0;
        }
        let Some(at) = id.0.checked_sub(self.base) else {
            return false;
        };
        if (at as usize) < self.slots.len() {
            return false;
        }
        // A gap in the ids costs one empty slot each, until the oldest request ends.
        self.slots.resize_with(at as usize, || None);
        self.pending.insert(&request);
        self.slots.push_back(Some(RequestEntry {
            request,
            evidence: None,
            progress: None,
            state: RequestState::Pending,
            late,
            index: DeadlineIndex::None,
            left_batch: false,
            probe: false,
        }));
        self.live += 1;
        self.reindex(id);
        true
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&RequestEntry> {
        let at = id.0.checked_sub(self.base)?;
        self.slots.get(at as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut RequestEntry> {
        let at = id.0.checked_sub(self.base)?;
        self.slots.get_mut(at as usize)?.as_mut()
    }

    /// Moves a live request. Does nothing for a request that has ended.
    pub(crate) fn set_state(&mut self, id: RequestId, state: RequestState) {
        let at = id.0.checked_sub(self.base);
        let Some(Some(entry)) = at.and_then(|at| self.slots.get_mut(at as usize)) else {
            return;
        };
        let before = std::mem::replace(&mut entry.state, state);
        match (
            before == RequestState::Pending,
            state == RequestState::Pending,
        ) {
            (false, true) => self.pending.insert(&entry.request),
            (true, false) => self.pending.remove(id),
            (true, true) | (false, false) => {}
        }
        self.reindex(id);
    }

    /// Puts a request into the index of deadlines that fits its state.
    fn reindex(&mut self, id: RequestId) {
        let Some(entry) = self.get_mut(id) else {
            return;
        };
        let (before, after) = (entry.index, entry.fitting_index());
        if before == after {
            return;
        }
        entry.index = after;
        let (app, key) = (entry.request.app, (entry.request.deadline, id));
        self.unindex(before, app, &key);
        match after {
            DeadlineIndex::None => {}
            DeadlineIndex::Expiries => {
                self.expiries.insert(key);
            }
            DeadlineIndex::Guarded => {
                if self.guarded.len() <= app.index() {
                    self.guarded.resize_with(app.index() + 1, BTreeSet::new);
                }
                self.guarded[app.index()].insert(key);
            }
        }
    }

    fn unindex(&mut self, index: DeadlineIndex, app: AppId, key: &(Time, RequestId)) {
        match index {
            DeadlineIndex::None => {}
            DeadlineIndex::Expiries => {
                self.expiries.remove(key);
            }
            DeadlineIndex::Guarded => {
                if let Some(guarded) = self.guarded.get_mut(app.index()) {
                    guarded.remove(key);
                }
            }
        }
    }

    /// Takes a request out for good.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<RequestEntry> {
        let at = id.0.checked_sub(self.base)?;
        let entry = self.slots.get_mut(at as usize)?.take()?;
        if entry.state == RequestState::Pending {
            self.pending.remove(id);
        }
        let key = (entry.request.deadline, id);
        self.unindex(entry.index, entry.request.app, &key);
        self.live -= 1;
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        Some(entry)
    }

    /// All live requests, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RequestEntry> {
        self.slots.iter().flatten()
    }

    /// Live requests, pending or not.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// The pending requests.
    pub(crate) fn pending(&self) -> &PendingRequests {
        &self.pending
    }

    /// The pending requests as the columns of a window, oldest first.
    pub(crate) fn pending_columns(&mut self) -> &Requests {
        self.pending.columns()
    }

    /// Deadlines of an app's pending requests that the host guards, in order. Parked ones are not
    /// among them.
    pub(crate) fn guarded(&self, app: AppId) -> Option<&BTreeSet<(Time, RequestId)>> {
        self.guarded.get(app.index()).filter(|set| !set.is_empty())
    }

    /// The earliest deadline among requests that may still be dropped.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.expiries.first().map(|&(deadline, _)| deadline)
    }

    /// Takes one request off the expiry list whose deadline lies before `now`.
    pub(crate) fn pop_expired(&mut self, now: Time) -> Option<RequestId> {
        let &(deadline, id) = self.expiries.first()?;
        if deadline >= now {
            return None;
        }
        self.expiries.pop_first();
        if let Some(entry) = self.get_mut(id) {
            entry.index = DeadlineIndex::None;
        }
        Some(id)
    }
}

impl RequestEntry {
    pub(crate) fn state(&self) -> RequestState {
        self.state
    }

    /// The treatment of its app's late requests, as of its arrival.
    pub(crate) fn late(&self) -> Late {
        self.late
    }

    fn fitting_index(&self) -> DeadlineIndex {
        match (self.late, self.state) {
            (Late::Serve, _) => DeadlineIndex::None,
            (Late::Drop, _) => DeadlineIndex::Expiries,
            (_, RequestState::Pending) if self.progress.is_none() && !self.probe => {
                DeadlineIndex::Guarded
            }
            (_, RequestState::Running(..) | RequestState::Late) => DeadlineIndex::None,
            (Late::Shed, _) => DeadlineIndex::Expiries,
            (Late::Last, _) => DeadlineIndex::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64) -> Request {
        Request {
            id: RequestId(id),
            app: AppId(0),
            arrival: Time(id),
            deadline: Time(id + 10),
            priority: 0,
            min_accuracy: 0.0,
            pinned: None,
        }
    }

    #[test]
    fn refuses_ids_that_do_not_grow() {
        let mut table = RequestTable::default();
        assert!(table.insert(request(5), Late::Serve));
        assert!(!table.insert(request(5), Late::Serve));
        assert!(!table.insert(request(4), Late::Serve));
        table.remove(RequestId(5));
        assert!(
            !table.insert(request(5), Late::Serve),
            "an ended id stays used"
        );
        assert!(table.insert(request(9), Late::Serve));
    }

    #[test]
    fn keeps_no_memory_of_ended_requests() {
        let mut table = RequestTable::default();
        for id in 0..1_000 {
            assert!(table.insert(request(id), Late::Serve));
            assert!(table.remove(RequestId(id)).is_some());
        }
        assert_eq!((table.live(), table.slots.len()), (0, 0));
    }

    #[test]
    fn expires_once_and_in_order() {
        let mut table = RequestTable::default();
        for id in [1, 2, 3] {
            table.insert(request(id), if id == 2 { Late::Serve } else { Late::Drop });
        }
        assert_eq!(table.next_expiry(), Some(Time(11)));
        assert_eq!(
            table.pop_expired(Time(11)),
            None,
            "a deadline is still in time"
        );
        assert_eq!(table.pop_expired(Time(50)), Some(RequestId(1)));
        assert_eq!(table.pop_expired(Time(50)), Some(RequestId(3)));
        assert_eq!(table.pop_expired(Time(50)), None);
    }
}
