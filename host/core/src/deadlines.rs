//! Requests by deadline.
//!
//! Most deadlines come in order, because the requests of an app mostly have equal times to answer.
//! Those are in a queue, where both ends are reached at once; the others are in a tree.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use crate::ids::RequestId;
use crate::time::Time;

/// A request at its deadline.
pub(crate) type Due = (Time, RequestId);

/// Slots of requests that left, from which on they are removed.
const LEFT_MIN: usize = 64;

/// Requests in the order of their deadlines, those with equal ones in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct DeadlineSet {
    /// In order. The first and the last slot have their request.
    queue: VecDeque<Slot>,
    /// Slots whose request has left.
    left: usize,
    /// Those that came after a later one of the queue.
    tree: BTreeSet<Due>,
}

#[derive(Debug)]
struct Slot {
    due: Due,
    is_here: bool,
}

// === impl DeadlineSet ===

impl DeadlineSet {
    pub(crate) fn len(&self) -> usize {
        self.queue.len() - self.left + self.tree.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.tree.is_empty()
    }

    /// Adds a request, which is not in it.
    pub(crate) fn insert(&mut self, due: Due) {
        match self.queue.back() {
            Some(last) if last.due >= due => {
                self.tree.insert(due);
            }
            _ => self.queue.push_back(Slot { due, is_here: true }),
        }
    }

    pub(crate) fn remove(&mut self, due: Due) {
        let at = match self.queue.front() {
            Some(first) if first.due == due => 0,
            _ => match self.queue.binary_search_by_key(&due, |slot| slot.due) {
                Ok(at) if self.queue[at].is_here => at,
                _ => {
                    self.tree.remove(&due);
                    return;
                }
            },
        };
        self.queue[at].is_here = false;
        self.left += 1;
        while self.queue.front().is_some_and(|first| !first.is_here) {
            self.queue.pop_front();
            self.left -= 1;
        }
        while self.queue.back().is_some_and(|last| !last.is_here) {
            self.queue.pop_back();
            self.left -= 1;
        }
        if self.left > LEFT_MIN && self.left > self.queue.len() / 2 {
            self.queue.retain(|slot| slot.is_here);
            self.left = 0;
        }
    }

    /// The earliest one.
    pub(crate) fn first(&self) -> Option<Due> {
        let queued = self.queue.front().map(|first| first.due);
        match self.tree.first() {
            Some(&other) => Some(queued.map_or(other, |queued| queued.min(other))),
            None => queued,
        }
    }

    /// Those before this one, in order.
    pub(crate) fn before(&self, due: Due) -> impl Iterator<Item = Due> {
        let queued = self.queue.iter().filter(|slot| slot.is_here);
        let queued = queued
            .map(|slot| slot.due)
            .take_while(move |queued| *queued < due);
        merged(queued, self.tree.range(..due).copied())
    }

    /// The one that this number of others follow.
    pub(crate) fn nth_last(&self, others: usize) -> Option<Due> {
        let queued = self.queue.iter().rev().filter(|slot| slot.is_here);
        let queued = queued.map(|slot| Reverse(slot.due));
        let others_first = self.tree.iter().rev().copied().map(Reverse);
        let found = merged(queued, others_first).nth(others)?;
        Some(found.0)
    }
}

/// Two sorted sequences as one.
fn merged<T: Ord>(
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
) -> impl Iterator<Item = T> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if b < a => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(deadline: u64, id: u64) -> Due {
        (Time(deadline), RequestId(id))
    }

    /// Deadlines in order, with some that come earlier or later, and requests that leave anywhere.
    #[test]
    fn it_is_as_a_tree_of_all_requests() {
        let mut seed = 1_u64;
        let mut random = move |bound: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        let (mut set, mut tree) = (DeadlineSet::default(), BTreeSet::new());
        for id in 0..20_000 {
            let early = if random(4) == 0 { random(200) } else { 0 };
            let added = due(1_000 + id / 3 - early, id);
            set.insert(added);
            tree.insert(added);
            // Grows to some hundreds and shrinks again.
            for _ in 0..random(if id / 1_000 % 2 == 0 { 3 } else { 5 }) {
                let from_begin = random(tree.len() as u64 + 1) as usize;
                let at = if random(2) == 0 { 0 } else { from_begin };
                if let Some(&leaving) = tree.iter().nth(at) {
                    set.remove(leaving);
                    set.remove(leaving);
                    tree.remove(&leaving);
                }
            }
            assert_eq!(set.len(), tree.len());
            assert_eq!(set.is_empty(), tree.is_empty());
            assert_eq!(set.first(), tree.first().copied());
            assert!(set.left <= LEFT_MIN.max(set.queue.len() / 2));
            let nth = random(20) as usize;
            assert_eq!(set.nth_last(nth), tree.iter().rev().nth(nth).copied());
            if id % 50 == 0 {
                let bound = due(1_000 + id / 3 - random(300), id);
                let expected: Vec<Due> = tree.range(..bound).copied().collect();
                assert_eq!(set.before(bound).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn one_that_stays_keeps_no_slots_of_those_that_left() {
        let mut set = DeadlineSet::default();
        set.insert(due(0, 0));
        for id in 1..10_000 {
            set.insert(due(id, id));
            set.insert(due(id, id + 20_000));
            set.remove(due(id, id));
        }
        for id in 1..9_999 {
            set.remove(due(id, id + 20_000));
        }
        assert_eq!(set.len(), 2);
        assert!(set.queue.len() <= LEFT_MIN + 2);
    }
}
