//! The check of a window that a policy is shown.

use std::collections::BTreeSet;

use switchyard_core::catalog::Catalog;
use switchyard_core::window::Window;

/// The first mistake, if there is one.
pub(super) fn mistake(window: &Window, catalog: &Catalog) -> Option<String> {
    let requests = &window.requests;
    let rows = requests.id.len();
    let columns = [
        requests.app.len(),
        requests.arrival.len(),
        requests.deadline.len(),
        requests.priority.len(),
        requests.min_accuracy.len(),
    ];
    if columns.iter().any(|&len| len != rows) {
        return Some(format!("{rows} ids, and columns of {columns:?}"));
    }
    if let Some(pair) = requests.id.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Some(format!("id {} is followed by {}", pair[0], pair[1]));
    }
    let apps = catalog.apps.len();
    if requests.app.iter().any(|&app| app as usize >= apps) {
        return Some(format!("an app is none of {apps}"));
    }
    let workers = window.workers.up.len();
    if workers != catalog.workers.len() || window.workers.incarnation.len() != workers {
        return Some(format!("{workers} workers of {}", catalog.workers.len()));
    }
    for progress in &requests.progress {
        let is_up = window.workers.up.get(progress.worker.index()) == Some(&1);
        if progress.index as usize >= rows || !is_up {
            return Some(format!(
                "{progress:?} of {rows} rows, up {:?}",
                window.workers.up
            ));
        }
    }
    if requests
        .evidence_index
        .iter()
        .any(|&at| at as usize >= rows)
    {
        return Some(format!("evidence of a row beyond {rows}"));
    }
    let mut ids: BTreeSet<u64> = requests.id.iter().copied().collect();
    let ended = window.completions.iter().map(|completion| completion.id.0);
    let mut others = window.placed.id.iter().copied().chain(ended);
    let twice = others.find(|&id| !ids.insert(id));
    twice.map(|id| format!("request {id} stands in two places"))
}
