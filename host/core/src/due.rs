//! Pending requests by deadline. The starvation guard asks for the first one after every event, so
//! a request that leaves is forgotten only when it comes to the head or when too many have left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::RequestId;
use crate::time::Time;

/// Entries of requests that left, from which on they are removed.
const LEFT_MIN: usize = 64;

/// A heap of deadlines whose head is always pending.
#[derive(Debug, Default)]
pub(crate) struct DueRequests {
    heap: BinaryHeap<Reverse<(Time, RequestId)>>,
}

// === impl DueRequests ===

impl DueRequests {
    /// The pending request with the earliest deadline, the oldest of equals.
    pub(crate) fn first(&self) -> Option<(Time, RequestId)> {
        self.heap.peek().map(|&Reverse(first)| first)
    }

    /// Takes a request in that became pending.
    pub(crate) fn push(&mut self, deadline: Time, id: RequestId) {
        self.heap.push(Reverse((deadline, id)));
    }

    /// Forgets requests that left: those at the head, and all of them when they are more than the
    /// `pending` ones. Call it after each request that left; `is_pending` tells the others apart.
    pub(crate) fn settle(&mut self, pending: usize, is_pending: impl Fn(RequestId) -> bool) {
        while let Some(&Reverse((_, id))) = self.heap.peek() {
            if is_pending(id) {
                break;
            }
            self.heap.pop();
        }
        if self.heap.len() > LEFT_MIN + 2 * pending {
            let mut entries = std::mem::take(&mut self.heap).into_vec();
            entries.retain(|&Reverse((_, id))| is_pending(id));
            // A request that was pending more than once has an entry for each time.
            entries.sort_unstable();
            entries.dedup();
            self.heap = entries.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn deadline(id: u64) -> Time {
        Time(id * 37 % 101)
    }

    proptest! {
        /// The head is the first of a sorted set, and entries of requests that left are bounded.
        #[test]
        fn the_head_is_the_earliest_deadline(steps in prop::collection::vec(0_u64..40, 0..600)) {
            let (mut due, mut known) = (DueRequests::default(), BTreeSet::new());
            for id in steps {
                let entry = (deadline(id), RequestId(id));
                if known.insert(entry) {
                    due.push(entry.0, entry.1);
                } else {
                    known.remove(&entry);
                    let is_pending = |id: RequestId| known.contains(&(deadline(id.0), id));
                    due.settle(known.len(), is_pending);
                }
                prop_assert_eq!(due.first(), known.first().copied());
                prop_assert!(due.heap.len() <= LEFT_MIN + 2 * known.len() + 40);
            }
        }
    }

    #[test]
    fn a_request_that_is_pending_again_and_again_takes_no_more_memory() {
        let mut due = DueRequests::default();
        due.push(Time(0), RequestId(0));
        for _ in 0..10_000 {
            due.push(Time(1), RequestId(1));
            due.settle(1, |id| id == RequestId(0));
        }
        assert!(due.heap.len() <= LEFT_MIN + 2);
        assert_eq!(due.first(), Some((Time(0), RequestId(0))));
    }
}
