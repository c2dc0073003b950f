//! The pending requests as columns of a window, kept from window to window: opening a window copies
//! columns and applies the changes since the last one, instead of looking at every request.

use std::collections::BTreeMap;

use crate::ids::RequestId;
use crate::request::Request;
use crate::time::Time;
use crate::window::Requests;

/// Rows of requests that left, from which on they are removed before the next window.
const LEFT_MIN: usize = 64;

/// PendingRequests requests in ascending id, which is arrival order.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    /// One row per request. The row of a request that left stays until the next call of
    /// [`columns`](Self::columns).
    columns: Requests,
    /// Per row: the request is still pending.
    here: Vec<bool>,
    /// Every row before this one has left.
    first: usize,
    /// Rows that have left.
    left: usize,
    /// PendingRequests again although younger requests have rows: their rows go in between.
    returned: BTreeMap<RequestId, Request>,
    /// Not later than the earliest deadline; [`Time::NEVER`] while nothing is pending. A bound, so
    /// that a request that leaves costs nothing.
    due_from: Time,
    /// The request with that deadline, unless it has left.
    due: Option<RequestId>,
}

// === impl PendingRequests ===

impl Default for PendingRequests {
    fn default() -> Self {
        Self {
            columns: Requests::default(),
            here: Vec::new(),
            first: 0,
            left: 0,
            returned: BTreeMap::new(),
            due_from: Time::NEVER,
            due: None,
        }
    }
}

impl PendingRequests {
    pub(crate) fn len(&self) -> usize {
        self.here.len() - self.left + self.returned.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A bound of the earliest deadline: no pending request has an earlier one.
    pub(crate) fn due_from(&self) -> Time {
        self.due_from
    }

    /// The request with the earliest deadline. Looks at all requests if the last answer has left.
    pub(crate) fn first_due(&mut self) -> Option<(Time, RequestId)> {
        if self.due.is_none() && !self.is_empty() {
            let columns = &self.columns;
            let rows = columns.deadline.iter().zip(&columns.id).zip(&self.here);
            let rows = rows.filter(|(_, here)| **here);
            let rows = rows.map(|((&deadline, &id), _)| (Time(deadline), RequestId(id)));
            let returned = self.returned.values();
            let returned = returned.map(|request| (request.deadline, request.id));
            if let Some((deadline, id)) = rows.chain(returned).min() {
                (self.due_from, self.due) = (deadline, Some(id));
            }
        }
        self.due.map(|id| (self.due_from, id))
    }

    /// Takes a request in. Does nothing for a request that is here already.
    pub(crate) fn insert(&mut self, request: &Request) {
        if request.deadline < self.due_from || self.is_empty() {
            (self.due_from, self.due) = (request.deadline, Some(request.id));
        }
        if self.returned.contains_key(&request.id) {
            return;
        }
        let ids = &self.columns.id;
        if ids.last().is_none_or(|&last| last < request.id.0) {
            return self.push(request);
        }
        match ids.binary_search(&request.id.0) {
            Ok(at) if self.here[at] => {}
            Ok(at) => {
                self.here[at] = true;
                self.left -= 1;
                self.first = self.first.min(at);
            }
            Err(_) => {
                self.returned.insert(request.id, request.clone());
            }
        }
    }

    /// Lets a request go, if it is here.
    pub(crate) fn remove(&mut self, id: RequestId) {
        self.remove_row(id);
        if self.due == Some(id) {
            self.due = None;
        }
        if self.is_empty() {
            self.due_from = Time::NEVER;
        }
    }

    fn remove_row(&mut self, id: RequestId) {
        match self.columns.id.binary_search(&id.0) {
            Ok(at) if self.here[at] => {
                self.here[at] = false;
                self.left += 1;
                while self.here.get(self.first) == Some(&false) {
                    self.first += 1;
                }
                // With routes no window may open for long, so rows are removed here too.
                if self.left >= LEFT_MIN && self.left * 2 > self.here.len() {
                    self.forget_left();
                }
            }
            Ok(_) => {}
            Err(_) => {
                self.returned.remove(&id);
            }
        }
    }

    /// All requests as columns, oldest first, without progress and evidence.
    pub(crate) fn columns(&mut self) -> &Requests {
        self.forget_left();
        self.place_returned();
        &self.columns
    }

    fn push(&mut self, request: &Request) {
        let columns = &mut self.columns;
        columns.id.push(request.id.0);
        columns.app.push(request.app.0);
        columns.arrival.push(request.arrival.0);
        columns.deadline.push(request.deadline.0);
        columns.priority.push(request.priority);
        columns.min_accuracy.push(request.min_accuracy);
        self.here.push(true);
    }

    /// Closes the gaps in one pass over the rows after the first gap.
    fn forget_left(&mut self) {
        if self.left == 0 {
            return;
        }
        let gap = if self.first > 0 { 0 } else { self.first_gap() };
        let here = &self.here[gap..];
        close(&mut self.columns.id, gap, here);
        close(&mut self.columns.app, gap, here);
        close(&mut self.columns.arrival, gap, here);
        close(&mut self.columns.deadline, gap, here);
        close(&mut self.columns.priority, gap, here);
        close(&mut self.columns.min_accuracy, gap, here);
        self.here.clear();
        self.here.resize(self.columns.id.len(), true);
        (self.first, self.left) = (0, 0);
    }

    fn first_gap(&self) -> usize {
        let gap = self.here.iter().position(|&here| !here);
        gap.unwrap_or(self.here.len())
    }

    /// Inserts the rows of the returned requests from the end, so that each row moves once.
    fn place_returned(&mut self) {
        let mut from = self.columns.id.len();
        let returned = std::mem::take(&mut self.returned);
        for request in returned.values() {
            self.push(request);
        }
        let mut to = self.columns.id.len();
        for request in returned.into_values().rev() {
            while from > 0 && self.columns.id[from - 1] > request.id.0 {
                (from, to) = (from - 1, to - 1);
                self.move_row(from, to);
            }
            to -= 1;
            self.set_row(to, &request);
        }
    }

    fn move_row(&mut self, from: usize, to: usize) {
        let columns = &mut self.columns;
        columns.id[to] = columns.id[from];
        columns.app[to] = columns.app[from];
        columns.arrival[to] = columns.arrival[from];
        columns.deadline[to] = columns.deadline[from];
        columns.priority[to] = columns.priority[from];
        columns.min_accuracy[to] = columns.min_accuracy[from];
    }

    fn set_row(&mut self, at: usize, request: &Request) {
        let columns = &mut self.columns;
        columns.id[at] = request.id.0;
        columns.app[at] = request.app.0;
        columns.arrival[at] = request.arrival.0;
        columns.deadline[at] = request.deadline.0;
        columns.priority[at] = request.priority;
        columns.min_accuracy[at] = request.min_accuracy;
    }
}

/// Removes from `column`, from `gap` on, the rows that are not `here`.
fn close<T: Copy>(column: &mut Vec<T>, gap: usize, here: &[bool]) {
    let mut to = gap;
    for (from, _) in (gap..).zip(here).filter(|(_, here)| **here) {
        column[to] = column[from];
        to += 1;
    }
    column.truncate(to);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::cost::Cost;
    use crate::ids::AppId;

    fn request(id: u64) -> Request {
        Request {
            id: RequestId(id),
            app: AppId(id as u32 % 7),
            arrival: Time(id * 10),
            // Neither in arrival order nor all different.
            deadline: Time(id * 7_919 % 64),
            priority: id as u32 % 3,
            min_accuracy: id as f32 / 2.0,
            pinned: None,
            cost: Cost::ONE,
        }
    }

    /// The columns expected for these ids.
    fn columns(ids: impl Iterator<Item = u64>) -> Requests {
        let mut columns = Requests::default();
        for request in ids.map(request) {
            columns.id.push(request.id.0);
            columns.app.push(request.app.0);
            columns.arrival.push(request.arrival.0);
            columns.deadline.push(request.deadline.0);
            columns.priority.push(request.priority);
            columns.min_accuracy.push(request.min_accuracy);
        }
        columns
    }

    #[test]
    fn memory_is_bounded_without_windows() {
        let mut pending = PendingRequests::default();
        pending.insert(&request(0));
        for id in 1..100_000 {
            pending.insert(&request(id));
            pending.remove(RequestId(id));
        }
        assert_eq!(pending.len(), 1);
        assert!(pending.here.len() <= 2 * LEFT_MIN);
    }

    proptest! {
        /// Any sequence of insertions and removals leaves a sorted set.
        #[test]
        fn behaves_as_a_sorted_set(
            steps in prop::collection::vec((0_u8..8, 0_usize..400), 0..600)
        ) {
            let mut pending = PendingRequests::default();
            let (mut known, mut away, mut next) = (BTreeSet::new(), BTreeSet::new(), 0);
            for (kind, which) in steps {
                let pick = |set: &BTreeSet<u64>| set.iter().nth(which % set.len().max(1)).copied();
                match kind {
                    0..=2 => {
                        pending.insert(&request(next));
                        known.insert(next);
                        next += 1 + which as u64 % 2;
                    }
                    3..=5 => if let Some(id) = pick(&known) {
                        pending.remove(RequestId(id));
                        known.remove(&id);
                        away.insert(id);
                    },
                    6 => if let Some(id) = pick(&away) {
                        pending.insert(&request(id));
                        away.remove(&id);
                        known.insert(id);
                    },
                    _ => prop_assert_eq!(pending.columns(), &columns(known.iter().copied())),
                }
                prop_assert_eq!(pending.len(), known.len());
                let earliest = known.iter().map(|&id| request(id).deadline).min();
                prop_assert!(pending.due_from() <= earliest.unwrap_or(Time::NEVER));
                if which % 3 == 0 {
                    let due = pending.first_due();
                    prop_assert_eq!(due.map(|(deadline, _)| deadline), earliest);
                    let is_here = due.is_none_or(|(_, id)| known.contains(&id.0));
                    prop_assert!(is_here && pending.due_from() == earliest.unwrap_or(Time::NEVER));
                }
            }
            prop_assert_eq!(pending.columns(), &columns(known.iter().copied()));
        }
    }
}
