//! Requests of one app and one deadline, with their workers and tables.

use ramsis_tables::{Action, Balancing};
use switchyard_sdk::{AppId, VariantId, WorkerId};

use crate::artifacts::KindTables;

/// Requests of one app and one deadline; they have their own workers.
#[derive(Clone, Debug)]
pub(crate) struct RequestClass {
    pub(crate) app: AppId,
    /// Least time from arrival to deadline of its requests, in microseconds.
    pub(crate) slo_us: u64,
    /// Per kind of worker.
    kinds: Vec<KindTables>,
    /// Ascending, each with the index of its kind in `kinds`.
    pub(crate) workers: Vec<(WorkerId, usize)>,
    /// Index in `workers` of the next in turn.
    pub(crate) next: usize,
    /// Its share of the app's arrivals; a moving average.
    pub(crate) share: f64,
    /// Whether a load beyond all tables was logged.
    pub(crate) logged_overload: bool,
    /// Per kind, the index of the table for this window's load.
    current: Vec<usize>,
}

// === impl RequestClass ===

impl RequestClass {
    pub(crate) fn new(app: AppId, kinds: Vec<KindTables>, workers: Vec<(WorkerId, usize)>) -> Self {
        Self {
            app,
            slo_us: kinds.first().map_or(0, |kind| kind.set.slo_us),
            current: vec![0; kinds.len()],
            kinds,
            workers,
            next: 0,
            share: 1.0,
            logged_overload: false,
        }
    }

    /// The rule that assigns its requests to its workers.
    pub(crate) fn balancing(&self) -> Balancing {
        let first = self.kinds.first();
        first.map_or(Balancing::default(), |kind| kind.set.balancing)
    }

    /// Selects the lowest tables that cover a load, otherwise the highest. False if none covers it.
    pub(crate) fn follow(&mut self, load_rps: f64) -> bool {
        for (current, kind) in self.current.iter_mut().zip(&self.kinds) {
            *current = kind.set.covering(load_rps);
        }
        self.kinds.iter().all(|kind| kind.set.covers(load_rps))
    }

    /// The highest load with tables, in requests per second.
    pub(crate) fn highest_rps(&self) -> f64 {
        let highest = self.kinds.iter().filter_map(|kind| kind.set.tables.last());
        let highest = highest.map(|entry| entry.load_rps);
        highest.fold(f64::INFINITY, f64::min)
    }

    /// N: the longest queue of a kind of worker with its own states.
    pub(crate) fn queue_max(&self, kind: usize) -> usize {
        let kind = self.kinds.get(kind);
        kind.map_or(0, |kind| kind.set.queue_max as usize)
    }

    /// The variant and batch of a worker with `queued` requests and the first deadline in
    /// `slack_us`.
    pub(crate) fn action(
        &self,
        kind: usize,
        queued: usize,
        slack_us: i64,
    ) -> Option<(VariantId, usize)> {
        let (kind, &current) = (self.kinds.get(kind)?, self.current.get(kind)?);
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        let Action { variant, batch } = kind.tables.get(current)?.action(queued, slack_us);
        let variant = kind.variants.get(usize::from(variant))?;
        Some((*variant, usize::from(batch)))
    }
}
