//! The next batch: each possible one is valued together with the rest for the others.

use std::cmp::Ordering;

use crate::yard::Yard;

/// Batch sizes that are tried, and the largest.
const SIZES: [usize; 11] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32];

/// Batches of a lane that are valued together with the rest, the best first.
const CANDIDATES: usize = 8;

/// A batch for a worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NextBatch {
    pub(crate) slot: usize,
    pub(crate) lane: usize,
    pub(crate) choice: usize,
    pub(crate) jobs: Vec<usize>,
    /// What the schedule with this batch earns.
    pub(crate) value: f64,
    /// What it earns more than its jobs would in full batches.
    promise: f64,
}

fn by_promise(a: &NextBatch, b: &NextBatch) -> Ordering {
    b.promise.total_cmp(&a.promise)
}

// === impl Yard ===

impl Yard<'_> {
    /// The batch with the highest value for one of the `open` slots, which are free now. None: no batch
    /// earns anything, the nodes are spent, or each slot had better wait for one that ends sooner elsewhere; such slots are
    /// taken out of `open`.
    pub(crate) fn next(&mut self, open: &mut Vec<usize>) -> Option<NextBatch> {
        while !open.is_empty() && self.nodes_left.get() > 0 {
            let mut best: Option<NextBatch> = None;
            let samples = self.unlike(open);
            for &slot in &samples {
                self.best_on(slot, &mut best);
            }
            let found = best?;
            match self.waiting(found.slot) {
                Some(value) if value > found.value => {
                    let later_us = self.later_us(found.slot);
                    self.slots[found.slot].free_us = later_us.unwrap_or(0.0);
                    open.retain(|&slot| slot != found.slot);
                }
                _ if self.pays_to_hold(&found) => self.held[found.lane] = true,
                _ => return Some(found),
            }
        }
        None
    }

    /// The batch with the highest value for one slot.
    pub(crate) fn best_for(&mut self, slot: usize) -> Option<NextBatch> {
        let mut best = None;
        self.best_on(slot, &mut best);
        best
    }

    /// Places a batch.
    pub(crate) fn take(&mut self, batch: &NextBatch) {
        let choice = &self.menus[batch.lane].choices[batch.choice];
        let rows = self.rows(&batch.jobs);
        self.slots[batch.slot].place(choice, batch.jobs.len(), rows);
        for &at in &batch.jobs {
            self.taken[at] = true;
        }
    }

    /// Values the most promising batches of each lane.
    fn best_on(&mut self, slot: usize, best: &mut Option<NextBatch>) {
        let mut candidates: Vec<NextBatch> = Vec::new();
        for lane in 0..self.menus.len() {
            if self.held[lane] {
                continue;
            }
            let first = candidates.len();
            let waiting = self.queue(lane).iter().filter(|&&at| !self.taken[at]);
            let waiting = waiting.count();
            for choice in 0..self.menus[lane].choices.len() {
                let most = self.slots[slot].batch_max(&self.menus[lane].choices[choice]);
                let most = most.min(waiting);
                let sizes = SIZES.into_iter().filter(|&size| size < most);
                for size in sizes.chain((most > 0).then_some(most)) {
                    candidates.extend(self.candidate(slot, lane, choice, size));
                }
            }
            candidates[first..].sort_by(by_promise);
            candidates.truncate(first + CANDIDATES);
        }
        self.keep_order(&mut candidates);
        candidates.sort_by(by_promise);
        for candidate in candidates {
            let state = self.slots[slot];
            self.take(&candidate);
            let value = candidate.value + self.rest();
            self.slots[slot] = state;
            for &at in &candidate.jobs {
                self.taken[at] = false;
            }
            // Cut short: the value says little.
            if self.nodes_left.get() == 0 && best.is_some() {
                break;
            }
            if best.as_ref().is_none_or(|best| value > best.value) {
                *best = Some(NextBatch { value, ..candidate });
            }
        }
    }

    /// Leaves out batches that overtake an older request in another lane of their app although they have more than
    /// an SLO left: nothing is won by it, and long requests would wait for as long as short ones come.
    fn keep_order(&self, candidates: &mut Vec<NextBatch>) {
        let last = self.menus.last().map(|menu| menu.app.index() + 1);
        // Fast path: every app has one lane.
        if last == Some(self.menus.len()) {
            return;
        }
        let mut waits_us = vec![0.0_f64; self.menus.len()];
        for batch in &*candidates {
            let ages_us = batch.jobs.iter().map(|&at| self.jobs.list[at].age_us);
            waits_us[batch.lane] = ages_us.fold(waits_us[batch.lane], f64::max);
        }
        let (menus, list) = (self.menus, &self.jobs.list);
        candidates.retain(|batch| {
            let (of, own_us) = (&menus[batch.lane], waits_us[batch.lane]);
            let is_urgent = batch.jobs.iter().any(|&at| list[at].left_us <= of.slo_us);
            let mut lanes = menus.iter().zip(&waits_us);
            is_urgent || !lanes.any(|(menu, &us)| menu.app == of.app && us > own_us)
        });
    }

    /// A batch of the first jobs that gain by it, with what it earns itself.
    fn candidate(&self, slot: usize, lane: usize, choice: usize, size: usize) -> Option<NextBatch> {
        let menu = &self.menus[lane];
        let state = &self.slots[slot];
        let end_us = |rows| state.free_us + state.time_of_us(&menu.choices[choice], size, rows);
        let queue = self.queue(lane);
        let last = &self.jobs.list[*queue.last()?];
        let least = size as f64 * self.jobs.lightest[lane];
        if end_us(least) > last.left_us + menu.late_max() * last.allowed_us as f64 {
            return None;
        }
        let usual_us = end_us(size as f64);
        let gains = |at: usize, end_us| self.jobs.gain(at, menu, choice, end_us) > 0.0;
        let gains_so = |&at: &usize| {
            let alone = || end_us(self.jobs.list[at].rows);
            !self.taken[at] && gains(at, if size == 1 { alone() } else { usual_us })
        };
        let jobs = queue.iter().copied().filter(gains_so);
        let jobs: Vec<usize> = jobs.take(size).collect();
        self.spend(2 * size);
        if jobs.len() < size {
            return None;
        }
        let rows = self.rows(&jobs);
        if rows > size as f64 && !jobs.iter().all(|&at| gains(at, end_us(rows))) {
            return None;
        }
        let value = self.net(state, lane, choice, &jobs);
        let surplus = self
            .arrivals
            .get(lane)
            .map_or(0.0, |arrivals| arrivals.surplus);
        Some(NextBatch {
            promise: value - surplus * size as f64,
            value,
            slot,
            lane,
            choice,
            jobs,
        })
    }

    /// The value if a slot stays free until another one is; none if all others are like it.
    fn waiting(&mut self, slot: usize) -> Option<f64> {
        let state = self.slots[slot];
        let others = self.slots.iter();
        if others.clone().all(|other| other.is_like(&state)) {
            return None;
        }
        let later_us = self.later_us(slot)?;
        self.slots[slot].free_us = later_us;
        let value = self.rest();
        self.slots[slot] = state;
        Some(value)
    }

    /// Whether a batch had better wait for the next arrival of its lane: that one adds less time to this batch
    /// than it would take otherwise, by more than the wait costs.
    fn pays_to_hold(&self, batch: &NextBatch) -> bool {
        let (Some(arrivals), slot) = (self.arrivals.get(batch.lane), &self.slots[batch.slot])
        else {
            return false;
        };
        let menu = &self.menus[batch.lane];
        let choice = &menu.choices[batch.choice];
        let size = batch.jobs.len();
        let (time_us, more_us) = (slot.time_us(choice, size), slot.time_us(choice, size + 1));
        let wait_us = 1.0 / arrivals.per_us.max(1e-12);
        // Not in the batch, perhaps, but more urgent.
        let mut waiting = self.queue(batch.lane).iter().filter(|&&at| !self.taken[at]);
        let left_us = waiting.next().map_or(0.0, |&at| self.jobs.list[at].left_us);
        if more_us + 2.0 * wait_us > left_us {
            return false;
        }
        let gain = arrivals.worth - arrivals.accuracy_max + menu.unseen[batch.choice];
        let waits_us = wait_us * size as f64 + more_us;
        let waits = self.jobs.wait_cost * waits_us / arrivals.allowed_us;
        gain - slot.price * (more_us - time_us + wait_us) - waits > arrivals.surplus
    }

    /// Time to the next arrival that a held batch waits for; none if no batch is held.
    pub(crate) fn next_arrival_us(&self) -> Option<f64> {
        let held = self
            .arrivals
            .iter()
            .zip(&self.held)
            .filter(|(_, held)| **held);
        let times_us = held.map(|(arrivals, _)| 1.0 / arrivals.per_us.max(1e-12));
        times_us.min_by(f64::total_cmp)
    }

    /// When the next busy worker is free.
    fn later_us(&self, slot: usize) -> Option<f64> {
        let free_us = self.slots[slot].free_us;
        let others = self.slots.iter().map(|other| other.free_us);
        others
            .filter(|&other_us| other_us > free_us)
            .min_by(f64::total_cmp)
    }
}
