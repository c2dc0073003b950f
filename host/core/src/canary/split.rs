//! The part of a window that one member sees: its own requests, and the whole pool.

use crate::catalog::Catalog;
use crate::ids::{AppId, RequestId};
use crate::policy::WindowFields;
use crate::window::{Placed, RequestCost, RequestProgress, Requests, Window, Workers};

/// A row of the whole window that is another member's.
const ABSENT: u32 = u32::MAX;

/// The buffer of the parts.
#[derive(Debug, Default)]
pub(super) struct Split {
    pub(super) part: Window,
    /// By row of the whole window: its row in the part.
    rows: Vec<u32>,
}

// === impl Split ===

impl Split {
    /// Fills the part with the requests that are `own`, and with the workers as they are after the plans
    /// of other members.
    pub(super) fn show(
        &mut self,
        whole: &Window,
        workers: &Workers,
        wants: WindowFields,
        catalog: &Catalog,
        own: impl Fn(RequestId) -> bool,
    ) {
        let part = &mut self.part;
        part.clear();
        part.id = whole.id;
        part.now = whole.now;
        part.changes.has_past_times = whole.changes.has_past_times;
        self.rows.clear();
        let r = &whole.requests;
        for (row, &id) in r.id.iter().enumerate() {
            if !own(RequestId(id)) {
                self.rows.push(ABSENT);
                continue;
            }
            self.rows.push(part.requests.id.len() as u32);
            part.requests.id.push(id);
            part.requests.app.push(r.app[row]);
            part.requests.arrival.push(r.arrival[row]);
            part.requests.deadline.push(r.deadline[row]);
            part.requests.priority.push(r.priority[row]);
            part.requests.min_accuracy.push(r.min_accuracy[row]);
        }
        show_marks(r, &self.rows, &mut part.requests);
        if wants.evidence {
            show_evidence(r, &self.rows, catalog, &mut part.requests);
        }
        part.workers.clone_from(workers);
        if wants.placed {
            show_placed(&whole.placed, &own, &mut part.placed);
        }
        if wants.residents {
            part.residents.clone_from(&whole.residents);
        }
        part.arrival_rate.clone_from(&whole.arrival_rate);
        part.slowdown.clone_from(&whole.slowdown);
        if wants.completions {
            let ended = whole.completions.iter().filter(|ended| own(ended.id));
            part.completions.extend(ended);
        }
    }
}

fn row_of(rows: &[u32], index: u32) -> Option<u32> {
    rows.get(index as usize)
        .copied()
        .filter(|&row| row != ABSENT)
}

fn show_marks(whole: &Requests, rows: &[u32], part: &mut Requests) {
    let progress = whole.progress.iter().filter_map(|progress| {
        Some(RequestProgress {
            index: row_of(rows, progress.index)?,
            ..*progress
        })
    });
    part.progress.extend(progress);
    let costs = whole.costs.iter().filter_map(|cost| {
        Some(RequestCost {
            index: row_of(rows, cost.index)?,
            ..*cost
        })
    });
    part.costs.extend(costs);
}

fn show_evidence(whole: &Requests, rows: &[u32], catalog: &Catalog, part: &mut Requests) {
    let mut counts = whole.evidence_counts.as_slice();
    for &index in &whole.evidence_index {
        let app = whole.app.get(index as usize).copied().map(AppId);
        let app = app.and_then(|app| catalog.app(app));
        let classes = app.map_or(0, |app| app.classes.len()).min(counts.len());
        let (of_request, rest) = counts.split_at(classes);
        counts = rest;
        if let Some(row) = row_of(rows, index) {
            part.evidence_index.push(row);
            part.evidence_counts.extend_from_slice(of_request);
        }
    }
}

fn show_placed(whole: &Placed, own: &impl Fn(RequestId) -> bool, part: &mut Placed) {
    for (row, &id) in whole
        .id
        .iter()
        .enumerate()
        .filter(|(_, id)| own(RequestId(**id)))
    {
        part.id.push(id);
        part.app.push(whole.app[row]);
        part.arrival.push(whole.arrival[row]);
        part.deadline.push(whole.deadline[row]);
        part.worker.push(whole.worker[row]);
        part.variant.push(whole.variant[row]);
        part.batch.push(whole.batch[row]);
        part.state.push(whole.state[row]);
    }
}
