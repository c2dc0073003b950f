//! Every accepted request that has not ended, and where it is.

use std::collections::{BTreeSet, VecDeque};

use crate::ids::{BatchId, RequestId, WorkerId};
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
    /// Deadlines of the live requests whose app drops late ones.
    expiries: BTreeSet<(Time, RequestId)>,
}

/// One live request.
#[derive(Debug)]
pub(crate) struct RequestEntry {
    pub(crate) request: Request,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) progress: Option<Progress>,
    pub(crate) repeats: Repeats,
    state: RequestState,
    expires: bool,
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
    /// Waits for a worker that can hold its pinned variant: none is up.
    Stranded,
}

/// The tries of a request that brought no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repeats {
    /// Batches that failed.
    pub(crate) failed: u8,
    /// Batches that were lost with their worker.
    pub(crate) lost: u8,
}

// === impl RequestTable ===

impl RequestTable {
    /// Takes a request in. False when the id was used before or is not the newest.
    pub(crate) fn insert(&mut self, request: Request, expires: bool) -> bool {
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
        if expires {
            self.expiries.insert((request.deadline, id));
        }
        self.pending.insert(&request);
        self.slots.push_back(Some(RequestEntry {
            request,
            evidence: None,
            progress: None,
            repeats: Repeats::default(),
            state: RequestState::Pending,
            expires,
        }));
        self.live += 1;
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
    }

    /// Takes a request out for good.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<RequestEntry> {
        let at = id.0.checked_sub(self.base)?;
        let entry = self.slots.get_mut(at as usize)?.take()?;
        if entry.state == RequestState::Pending {
            self.pending.remove(id);
        }
        if entry.expires {
            self.expiries.remove(&(entry.request.deadline, id));
        }
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
            entry.expires = false;
        }
        Some(id)
    }
}

impl RequestEntry {
    pub(crate) fn state(&self) -> RequestState {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AppId;

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
        assert!(table.insert(request(5), false));
        assert!(!table.insert(request(5), false));
        assert!(!table.insert(request(4), false));
        table.remove(RequestId(5));
        assert!(!table.insert(request(5), false), "an ended id stays used");
        assert!(table.insert(request(9), false));
    }

    #[test]
    fn keeps_no_memory_of_ended_requests() {
        let mut table = RequestTable::default();
        for id in 0..1_000 {
            assert!(table.insert(request(id), false));
            assert!(table.remove(RequestId(id)).is_some());
        }
        assert_eq!((table.live(), table.slots.len()), (0, 0));
    }

    #[test]
    fn expires_once_and_in_order() {
        let mut table = RequestTable::default();
        for id in [1, 2, 3] {
            table.insert(request(id), id != 2);
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
