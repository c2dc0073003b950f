//! The last seconds of a pool: ended requests by app, and batches by worker.
//!
//! Written with every batch and reply, read when an operator looks. Time is cut into slots that are used
//! again, so that a running pool counts without allocating.

mod ends;
mod report;
mod runs;

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::Reply;
use switchyard_core::guard::HOST_LABEL;
use switchyard_core::time::{Micros, Time};

use self::ends::AppEnds;
pub use self::report::{AppRecent, PolicyRecent, RecentReport, RunRecent, WorkerRecent};
use self::runs::Run;
pub(super) use self::runs::RunKind;

/// Length of a slot.
const SLOT: Micros = Micros::from_millis(500);

/// Slots that a report covers; the newest one has not ended.
const SLOTS: u64 = 20;

/// The newest slots that counts of requests cover: they follow a change of the load within seconds.
const SLOTS_OF_ENDS: u64 = 10;

/// The last slots of one pool.
pub(super) struct Recent {
    catalog: Arc<Catalog>,
    /// Label of the host's own decisions.
    host: Arc<str>,
    /// The time of the first event: no slot before it was seen whole.
    began: Time,
    /// Number of the newest slot: its beginning divided by [`SLOT`].
    newest: u64,
    /// By number modulo [`SLOTS`].
    slots: Vec<Slot>,
}

struct Slot {
    /// By app.
    apps: Vec<AppEnds>,
    runs: Vec<Run>,
}

// === impl Recent ===

impl Recent {
    /// Begins to count at `now`.
    pub(super) fn new(catalog: Arc<Catalog>, now: Time) -> Self {
        let slot = |_| Slot {
            apps: catalog.apps.iter().map(|_| AppEnds::default()).collect(),
            runs: Vec::new(),
        };
        Self {
            began: now,
            newest: number(now),
            slots: (0..SLOTS).map(slot).collect(),
            host: Arc::from(HOST_LABEL),
            catalog,
        }
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, now: Time, reply: &Reply) {
        self.advance(now);
        let at = position(self.newest);
        let ends = self.slots.get_mut(at);
        if let Some(ends) = ends.and_then(|slot| slot.apps.get_mut(reply.app.index())) {
            ends.add(&self.catalog, &self.host, reply);
        }
    }

    /// A batch of this many requests has ended after this long.
    pub(super) fn ran(&mut self, now: Time, kind: RunKind, requests: usize, compute: Micros) {
        self.advance(now);
        self.run(self.newest, kind).ended(requests);
        // A batch may be longer than a slot: each slot has its part of the time.
        let began = Time(now.0.saturating_sub(compute.0)).max(self.began);
        let (mut end, mut slot) = (now, self.newest);
        loop {
            let from = began.max(Time(slot * SLOT.0));
            self.run(slot, kind).busy += end.since(from);
            if from == began || slot <= self.oldest() {
                return;
            }
            (end, slot) = (from, slot - 1);
        }
    }

    /// Empties the slots that have begun since the last event.
    fn advance(&mut self, now: Time) {
        let newest = number(now);
        if newest <= self.newest {
            return;
        }
        let passed = (newest - self.newest).min(SLOTS);
        for slot in newest + 1 - passed..=newest {
            self.slots[position(slot)].clear();
        }
        self.newest = newest;
    }

    fn oldest(&self) -> u64 {
        (self.newest + 1).saturating_sub(SLOTS)
    }

    fn run(&mut self, slot: u64, kind: RunKind) -> &mut Run {
        let runs = &mut self.slots[position(slot)].runs;
        let at = runs.iter().position(|run| run.kind == kind);
        let at = at.unwrap_or_else(|| {
            runs.push(Run::new(kind));
            runs.len() - 1
        });
        &mut runs[at]
    }
}

// === impl Slot ===

impl Slot {
    fn clear(&mut self) {
        self.apps.iter_mut().for_each(AppEnds::clear);
        self.runs.clear();
    }
}

fn number(time: Time) -> u64 {
    time.0 / SLOT.0
}

fn position(slot: u64) -> usize {
    (slot % SLOTS) as usize
}

#[cfg(test)]
mod tests;
