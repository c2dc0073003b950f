//! Future events, by time and, at one time, in the order in which they became known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use switchyard_core::ids::{AppId, BatchId, RequestId, WorkerId};
use switchyard_core::time::Time;

use crate::source::SourceId;

/// A future event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SimEvent {
    /// The next request of a source.
    Arrival { source: SourceId, phase: u32 },
    /// A request's neighbours have been counted.
    Evidence {
        request: RequestId,
        app: AppId,
        label: u32,
    },
    /// A worker's load ahead of time ends.
    Loaded(WorkerId),
    /// A worker's batch ends, unless the worker was away meanwhile.
    Finished(WorkerId, BatchId),
    /// A worker goes away.
    Down(WorkerId),
    /// A worker is back.
    Up(WorkerId),
    /// A worker dies at random.
    Dies(WorkerId),
    /// It returns, and will die again.
    Returns(WorkerId),
}

/// The event heap. Sequence numbers fix the order of events at one time, which the heap alone does
/// not.
#[derive(Debug, Default)]
pub(crate) struct EventHeap {
    heap: BinaryHeap<Reverse<(Time, u64, SimEvent)>>,
    sequence: u64,
}

// === impl EventHeap ===

impl EventHeap {
    pub(crate) fn push(&mut self, at: Time, event: SimEvent) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, event)));
    }

    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event at `now` or before.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<SimEvent> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, event))| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_at_one_time_keep_their_order() {
        let mut events = EventHeap::default();
        let worker = |w| SimEvent::Loaded(WorkerId(w));
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
