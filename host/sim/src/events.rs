//! What will happen, in order of time and then in the order in which it became known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use switchyard_core::ids::{AppId, RequestId, WorkerId};
use switchyard_core::time::Time;

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// The next request of a source.
    Arrival { source: u32, phase: u32 },
    /// A request's neighbours have been counted.
    Evidence {
        request: RequestId,
        app: AppId,
        label: u32,
    },
    /// A worker's load beside its batches ends.
    Loaded(WorkerId),
    /// A worker's batch ends.
    Finished(WorkerId),
}

/// The event heap. Sequence numbers make the order of what happens at one moment a fact, not
/// an accident of the heap.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    sequence: u64,
}

// === impl Events ===

impl Events {
    pub(crate) fn push(&mut self, at: Time, happening: Happening) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, happening)));
    }

    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next thing that happens at `now` or before.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Happening> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, happening))| happening)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_keeps_its_order() {
        let mut events = Events::default();
        let worker = |w| Happening::Finished(WorkerId(w));
        for (at, w) in [(5, 9), (3, 1), (5, 2), (3, 0)] {
            events.push(Time(at), worker(w));
        }
        assert_eq!(events.next_time(), Some(Time(3)));
        let due = std::iter::from_fn(|| events.pop_due(Time(4)));
        assert_eq!(due.collect::<Vec<_>>(), [worker(1), worker(0)]);
        let rest = std::iter::from_fn(|| events.pop_due(Time(5)));
        assert_eq!(rest.collect::<Vec<_>>(), [worker(9), worker(2)]);
    }
}
