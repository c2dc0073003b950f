//! Requests of one app and one kind of deadline, their workers, and the tables these go by.

use ramsis_tables::{Action, Balancing};
use switchyard_sdk::{AppId, VariantId, WorkerId};

use crate::sheet::Sheet;

/// One app, one deadline, workers of its own.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) app: AppId,
    /// Requests with at least so much time from their arrival, in microseconds.
    pub(crate) slo_us: u64,
    /// By kind of worker.
    sheets: Vec<Sheet>,
    /// Ascending, with the sheet that each goes by.
    pub(crate) workers: Vec<(WorkerId, usize)>,
    /// Position in `workers` of who is next in turn.
    pub(crate) next: usize,
    /// Its share of the app's arrivals, a moving average.
    pub(crate) share: f64,
    /// A load beyond all tables was told of.
    pub(crate) told: bool,
    /// Per sheet, position of the table for this window's load.
    current: Vec<usize>,
}

// === impl Class ===

impl Class {
    pub(crate) fn new(app: AppId, sheets: Vec<Sheet>, workers: Vec<(WorkerId, usize)>) -> Self {
        Self {
            app,
            slo_us: sheets.first().map_or(0, |sheet| sheet.set.slo_us),
            current: vec![0; sheets.len()],
            sheets,
            workers,
            next: 0,
            share: 1.0,
            told: false,
        }
    }

    /// How its requests are given to its workers.
    pub(crate) fn balancing(&self) -> Balancing {
        let first = self.sheets.first();
        first.map_or(Balancing::default(), |sheet| sheet.set.balancing)
    }

    /// Takes the lowest tables that cover a load, else the highest. False when none covers it.
    pub(crate) fn follow(&mut self, load_rps: f64) -> bool {
        for (current, sheet) in self.current.iter_mut().zip(&self.sheets) {
            *current = sheet.set.covering(load_rps);
        }
        self.sheets.iter().all(|sheet| sheet.set.covers(load_rps))
    }

    /// The highest load that there are tables for, in requests per second.
    pub(crate) fn highest_rps(&self) -> f64 {
        let highest = self
            .sheets
            .iter()
            .filter_map(|sheet| sheet.set.tables.last());
        let highest = highest.map(|entry| entry.load_rps);
        highest.fold(f64::INFINITY, f64::min)
    }

    /// What a worker of the class runs when so many wait for it, the first deadline so far away.
    pub(crate) fn action(
        &self,
        sheet: usize,
        queued: usize,
        slack_us: i64,
    ) -> Option<(VariantId, usize)> {
        let (sheet, &current) = (self.sheets.get(sheet)?, self.current.get(sheet)?);
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        let Action { variant, batch } = sheet.tables.get(current)?.action(queued, slack_us);
        let variant = sheet.variants.get(usize::from(variant))?;
        Some((*variant, usize::from(batch)))
    }
}
