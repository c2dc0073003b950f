//! Every accepted request that has not ended, and where it is.

use std::collections::{BTreeSet, VecDeque};

use crate::due::DueRequests;
use crate::ids::{BatchId, RequestId, WorkerId};
use crate::pending::PendingRequests;
use crate::request::{Evidence, Progress, Request};
use crate::time::Time;
use crate::window::Requests;

/// Slots of one block. A block with one live request costs this many slots, and each block one
/// step of the search behind a gap.
const SLOTS: usize = 16;

/// Live requests by id. Ids only grow, so these are blocks of consecutive ids in ascending order,
/// each with a live request: look-up in constant time unless requests of many blocks in a row
/// have ended, iteration in arrival order, no hashing, memory in proportion to the live requests.
#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    blocks: VecDeque<SlotBlock>,
    /// The slots of a block that was removed, for the next one.
    spare: Option<Box<[Option<RequestEntry>; SLOTS]>>,
    /// Ids below it are used.
    next: u64,
    live: usize,
    /// The live requests in [`RequestState::Pending`].
    pending: PendingRequests,
    /// The same by deadline.
    due: DueRequests,
    /// Deadlines of the live requests whose app drops late ones.
    expiries: BTreeSet<(Time, RequestId)>,
}

/// The requests with ids from `number * SLOTS` on.
#[derive(Debug)]
struct SlotBlock {
    number: u64,
    live: usize,
    slots: Box<[Option<RequestEntry>; SLOTS]>,
}

/// One live request.
#[derive(Debug)]
pub(crate) struct RequestEntry {
    pub(crate) request: Request,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) progress: Option<Progress>,
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
    /// Waits for the host to start it, in no window: its client pinned the variant, or the policy
    /// left it to wait for too long.
    Held,
    /// In a batch that waits.
    Queued(WorkerId, BatchId),
    /// In the running batch.
    Running(WorkerId, BatchId),
}

// === impl RequestTable ===

impl RequestTable {
    /// Takes a request in. False when the id was used before or is not the newest.
    pub(crate) fn insert(&mut self, request: Request, expires: bool) -> bool {
        let id = request.id;
        if id.0 < self.next {
            return false;
        }
        let Some(next) = id.0.checked_add(1) else {
            return false;
        };
        self.next = next;
        if expires {
            self.expiries.insert((request.deadline, id));
        }
        self.pending.insert(&request);
        self.due.push(request.deadline, id);
        let (number, at) = place(id);
        if self.blocks.back().is_none_or(|last| last.number != number) {
            self.blocks.push_back(SlotBlock {
                number,
                live: 0,
                slots: self.spare.take().unwrap_or_default(),
            });
        }
        if let Some(block) = self.blocks.back_mut() {
            block.live += 1;
            block.slots[at] = Some(RequestEntry {
                request,
                evidence: None,
                progress: None,
                state: RequestState::Pending,
                expires,
            });
        }
        self.live += 1;
        true
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&RequestEntry> {
        find(&self.blocks, id)
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut RequestEntry> {
        let (number, at) = place(id);
        let block = position(&self.blocks, number)?;
        self.blocks[block].slots[at].as_mut()
    }

    /// Moves a live request. Does nothing for a request that has ended.
    pub(crate) fn set_state(&mut self, id: RequestId, state: RequestState) {
        let Some(entry) = self.get_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut entry.state, state);
        match (
            before == RequestState::Pending,
            state == RequestState::Pending,
        ) {
            (false, true) => self.enter_pending(id),
            (true, false) => self.leave_pending(id),
            (true, true) | (false, false) => {}
        }
    }

    /// Takes a request out for good.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<RequestEntry> {
        let (number, at) = place(id);
        let position = position(&self.blocks, number)?;
        let block = &mut self.blocks[position];
        let entry = block.slots[at].take()?;
        block.live -= 1;
        if block.live == 0 {
            self.spare = self.blocks.remove(position).map(|block| block.slots);
        }
        if entry.state == RequestState::Pending {
            self.leave_pending(id);
        }
        if entry.expires {
            self.expiries.remove(&(entry.request.deadline, id));
        }
        self.live -= 1;
        Some(entry)
    }

    fn enter_pending(&mut self, id: RequestId) {
        if let Some(entry) = find(&self.blocks, id) {
            self.pending.insert(&entry.request);
            self.due.push(entry.request.deadline, id);
        }
    }

    fn leave_pending(&mut self, id: RequestId) {
        self.pending.remove(id);
        let is_pending = |id| {
            let entry = find(&self.blocks, id);
            entry.is_some_and(|entry| entry.state == RequestState::Pending)
        };
        self.due.settle(self.pending.len(), is_pending);
    }

    /// All live requests, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RequestEntry> {
        let slots = self.blocks.iter().flat_map(|block| block.slots.iter());
        slots.flatten()
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

    /// The pending request with the earliest deadline, the oldest of equals.
    pub(crate) fn first_due(&self) -> Option<(Time, RequestId)> {
        self.due.first()
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

/// The number of the block of a request, and the slot there.
fn place(id: RequestId) -> (u64, usize) {
    const SLOTS_U64: u64 = SLOTS as u64;
    (id.0 / SLOTS_U64, (id.0 % SLOTS_U64) as usize)
}

/// The position of a block. Mostly no block behind it is missing, which makes it a difference.
fn position(blocks: &VecDeque<SlotBlock>, number: u64) -> Option<usize> {
    let behind = blocks.back()?.number.checked_sub(number)?;
    let last = blocks.len() - 1;
    let guess = usize::try_from(behind).ok();
    let guess = guess.and_then(|behind| last.checked_sub(behind));
    match guess {
        Some(at) if blocks[at].number == number => Some(at),
        _ => {
            let found = blocks.binary_search_by_key(&number, |block| block.number);
            found.ok()
        }
    }
}

fn find(blocks: &VecDeque<SlotBlock>, id: RequestId) -> Option<&RequestEntry> {
    let (number, at) = place(id);
    blocks[position(blocks, number)?].slots[at].as_ref()
}

// === impl RequestEntry ===

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
        assert_eq!((table.live(), table.blocks.len()), (0, 0));
    }

    /// One request that lives long does not keep the slots of all that came after it.
    #[test]
    fn a_million_ended_requests_behind_a_live_one_leave_no_slots() {
        let mut table = RequestTable::default();
        assert!(table.insert(request(0), false));
        for id in 1..=1_000_000 {
            assert!(table.insert(request(id), false));
            if id > 100 {
                assert!(table.remove(RequestId(id - 100)).is_some());
            }
            assert!(table.blocks.len() <= 100 / SLOTS + 3);
        }
        assert_eq!(table.live(), 101);
        assert!(table.get(RequestId(0)).is_some());
        assert!(table.get(RequestId(999_900)).is_none());
        assert_eq!(table.first_due(), Some((Time(10), RequestId(0))));
        let ids: Vec<u64> = table.iter().map(|entry| entry.request.id.0).collect();
        let expected = std::iter::once(0).chain(999_901..=1_000_000);
        assert_eq!(ids, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_gap_in_the_ids_costs_nothing() {
        let mut table = RequestTable::default();
        for id in [3, 1 << 40] {
            assert!(table.insert(request(id), false));
        }
        assert_eq!(table.blocks.len(), 2);
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
