//! Every accepted request that has not ended, and where it is.

use std::collections::{BTreeMap, VecDeque};

use crate::catalog::Late;
use crate::cost::Cost;
use crate::deadlines::{DeadlineSet, Due};
use crate::ids::{AppId, BatchId, RequestId, WorkerId};
use crate::pending::PendingRequests;
use crate::request::{Evidence, Progress, Request};
use crate::time::Time;
use crate::window::Requests;

/// The ring has at most this many slots and [`SLOTS_PER_LIVE`] for each live request.
const SLOTS_MIN: usize = 64;

/// Slots of the ring for each live request: fewer would move requests out of it that end soon.
const SLOTS_PER_LIVE: usize = 4;

/// Live requests by id. Ids only grow, so the young ones are in a ring: constant-time look-up, no
/// hashing. The few that live much longer than the others move to a map, so that memory follows
/// the live requests. Both iterate in arrival order, and all of the map came before the ring.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    old: BTreeMap<RequestId, RequestEntry>,
    /// Id of `slots[0]`.
    base: u64,
    slots: VecDeque<Option<RequestEntry>>,
    live: usize,
    /// The live requests in [`RequestState::Pending`].
    pending: PendingRequests,
    /// Deadlines of the waiting requests that end there.
    expiries: DeadlineSet,
    /// By app: deadlines of the pending requests that the host guards.
    guarded: Vec<DeadlineSet>,
}

/// One live request.
#[derive(Debug)]
pub(crate) struct RequestEntry {
    pub(crate) request: Request,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) progress: Option<Progress>,
    pub(crate) repeats: Repeats,
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
    /// Waits for the host to start it, in no window: its client pinned the variant, or the policy
    /// left it to wait for too long.
    Held,
    /// In a batch that waits.
    Queued(WorkerId, BatchId),
    /// In the running batch.
    Running(WorkerId, BatchId),
    /// Cannot be answered in time; waits until nothing else does.
    Late,
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
        let Some(gap) = at.checked_sub(self.slots.len() as u64) else {
            return false;
        };
        self.make_room(gap, id);
        self.pending.insert(&request);
        self.slots.push_back(Some(RequestEntry {
            request,
            evidence: None,
            progress: None,
            repeats: Repeats::default(),
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

    /// Lets the ring end before the slot of a new request, with at most its bound of slots.
    fn make_room(&mut self, gap: u64, id: RequestId) {
        let most = SLOTS_MIN + SLOTS_PER_LIVE * self.live;
        let fits = gap <= SLOTS_MIN as u64;
        let gap = if fits { gap as usize } else { 0 };
        while !self.slots.is_empty() && (!fits || self.slots.len() + gap >= most) {
            if let Some(Some(entry)) = self.slots.pop_front() {
                self.old.insert(entry.request.id, entry);
            }
            self.base += 1;
        }
        match self.slots.is_empty() {
            true => self.base = id.0,
            false => self.slots.extend((0..gap).map(|_| None)),
        }
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&RequestEntry> {
        match id.0.checked_sub(self.base) {
            Some(at) => self.slots.get(at as usize)?.as_ref(),
            None => self.old.get(&id),
        }
    }

    /// The cost of a live request; 1 for others.
    pub(crate) fn cost(&self, id: RequestId) -> Cost {
        self.get(id).map_or(Cost::ONE, |entry| entry.request.cost)
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut RequestEntry> {
        match id.0.checked_sub(self.base) {
            Some(at) => self.slots.get_mut(at as usize)?.as_mut(),
            None => self.old.get_mut(&id),
        }
    }

    /// Moves a live request. Does nothing for a request that has ended.
    pub(crate) fn set_state(&mut self, id: RequestId, state: RequestState) {
        let entry = match id.0.checked_sub(self.base) {
            Some(at) => self.slots.get_mut(at as usize).and_then(Option::as_mut),
            None => self.old.get_mut(&id),
        };
        let Some(entry) = entry else { return };
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

    /// Takes the progress from a request, which starts over.
    pub(crate) fn clear_progress(&mut self, id: RequestId) -> Option<Progress> {
        let progress = self.get_mut(id)?.progress.take()?;
        self.reindex(id);
        Some(progress)
    }

    /// Puts a request into the index of deadlines that fits its state and progress.
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
        self.unindex(before, app, key);
        match after {
            DeadlineIndex::None => {}
            DeadlineIndex::Expiries => {
                self.expiries.insert(key);
            }
            DeadlineIndex::Guarded => {
                if self.guarded.len() <= app.index() {
                    self.guarded
                        .resize_with(app.index() + 1, DeadlineSet::default);
                }
                self.guarded[app.index()].insert(key);
            }
        }
    }

    fn unindex(&mut self, index: DeadlineIndex, app: AppId, key: Due) {
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
        let entry = match id.0.checked_sub(self.base) {
            Some(at) => self.slots.get_mut(at as usize)?.take()?,
            None => self.old.remove(&id)?,
        };
        if entry.state == RequestState::Pending {
            self.pending.remove(id);
        }
        let key = (entry.request.deadline, id);
        self.unindex(entry.index, entry.request.app, key);
        self.live -= 1;
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        Some(entry)
    }

    /// All live requests, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RequestEntry> {
        self.old.values().chain(self.slots.iter().flatten())
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
    pub(crate) fn guarded(&self, app: AppId) -> Option<&DeadlineSet> {
        self.guarded.get(app.index()).filter(|set| !set.is_empty())
    }

    /// The pending requests, to look for the earliest deadline.
    pub(crate) fn pending_mut(&mut self) -> &mut PendingRequests {
        &mut self.pending
    }

    /// The earliest deadline among requests that may still be dropped.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        self.expiries.first().map(|(deadline, _)| deadline)
    }

    /// Takes one request off the expiry list whose deadline lies before `now`.
    pub(crate) fn pop_expired(&mut self, now: Time) -> Option<RequestId> {
        let (deadline, id) = self.expiries.first()?;
        if deadline >= now {
            return None;
        }
        self.expiries.remove((deadline, id));
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
            cost: Cost::ONE,
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

    /// One request that lives long does not keep the slots of all that came after it.
    #[test]
    fn a_million_ended_requests_behind_a_live_one_leave_no_slots() {
        let mut table = RequestTable::default();
        assert!(table.insert(request(0), Late::Serve));
        for id in 1..=1_000_000 {
            assert!(table.insert(request(id), Late::Serve));
            if id > 100 {
                assert!(table.remove(RequestId(id - 100)).is_some());
            }
            assert!(table.slots.len() <= SLOTS_MIN + SLOTS_PER_LIVE * 101);
        }
        assert_eq!(table.live(), 101);
        assert!(table.get(RequestId(0)).is_some());
        assert!(table.get(RequestId(999_900)).is_none());
        assert!(table.slots.capacity() <= 2 * (SLOTS_MIN + SLOTS_PER_LIVE * 101));
        assert_eq!(table.old.len(), 1);
        let ids: Vec<u64> = table.iter().map(|entry| entry.request.id.0).collect();
        let expected = std::iter::once(0).chain(999_901..=1_000_000);
        assert_eq!(ids, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_gap_in_the_ids_costs_nothing() {
        let mut table = RequestTable::default();
        for id in [3, 1 << 40] {
            assert!(table.insert(request(id), Late::Serve));
        }
        assert!(table.slots.len() <= SLOTS_MIN);
        for id in [3, 1 << 40] {
            assert!(table.get(RequestId(id)).is_some());
            assert!(table.get(RequestId(id + 1)).is_none());
        }
        assert!(table.get(RequestId(1 << 30)).is_none());
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
