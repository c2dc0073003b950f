//! Checks that a decision fits its catalog, so that readers can use its indices.

use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};
use switchyard_core::plan::Plan;
use switchyard_core::window::{IDLE, RequestCost, Requests, Window};

/// Checks the lengths of columns, and indices.
///
/// # Errors
/// The first column or entry that does not fit.
pub(super) fn check(catalog: &Catalog, decision: &Decision) -> Result<(), String> {
    let Decision { window, plan, .. } = decision;
    check_requests(catalog, &window.requests)?;
    check_workers(catalog, window)?;
    check_placed(catalog, window)?;
    let known = |worker: WorkerId, variant: VariantId| {
        catalog.worker(worker).is_some() && catalog.variant(variant).is_some()
    };
    if !window.residents.iter().all(|r| known(r.worker, r.variant)) {
        return Err("residents: an unknown worker or variant".to_owned());
    }
    if !window.slowdown.is_empty() && window.slowdown.len() != catalog.kinds.len() {
        return Err(lengths("slowdown"));
    }
    if window.arrival_rate.len() != catalog.apps.len() {
        return Err(lengths("arrival_rate"));
    }
    check_plan(catalog, plan)
}

fn check_requests(catalog: &Catalog, requests: &Requests) -> Result<(), String> {
    let rows = requests.id.len();
    let columns = [
        requests.app.len(),
        requests.arrival.len(),
        requests.deadline.len(),
        requests.priority.len(),
        requests.min_accuracy.len(),
    ];
    if columns.iter().any(|&length| length != rows) {
        return Err(lengths("requests"));
    }
    let apps = requests.app.iter();
    let classes = |app: u32| catalog.app(AppId(app)).map(|app| app.classes.len());
    if !apps.copied().all(|app| classes(app).is_some()) {
        return Err("requests.app: an unknown app".to_owned());
    }
    for progress in &requests.progress {
        let known = (progress.index as usize) < rows
            && catalog.worker(progress.worker).is_some()
            && catalog.variant(progress.variant).is_some();
        if !known {
            return Err("requests.progress: an unknown request, worker or variant".to_owned());
        }
    }
    let is_row = |cost: &RequestCost| (cost.index as usize) < rows;
    if !requests.costs.is_sorted_by(|a, b| a.index < b.index) || !requests.costs.iter().all(is_row)
    {
        return Err("requests.costs: an unknown request, or not ascending".to_owned());
    }
    if !requests.evidence_index.is_sorted_by(|a, b| a < b) {
        return Err("requests.evidence_index: not ascending".to_owned());
    }
    let counts = requests.evidence_index.iter().map(|&index| {
        let app = requests.app.get(index as usize);
        app.and_then(|&app| classes(app))
    });
    let counts: Option<usize> = counts.sum();
    if counts != Some(requests.evidence_counts.len()) {
        return Err(lengths("requests.evidence_counts"));
    }
    Ok(())
}

fn check_workers(catalog: &Catalog, window: &Window) -> Result<(), String> {
    let workers = &window.workers;
    let columns = [
        workers.busy_until.len(),
        workers.free_at.len(),
        workers.running_since.len(),
        workers.running_variant.len(),
        workers.queued.len(),
        workers.parked.len(),
        workers.free_memory.len(),
        workers.up.len(),
        workers.incarnation.len(),
    ];
    let count = catalog.workers.len();
    if columns.iter().any(|&length| length != count) {
        return Err(lengths("workers"));
    }
    let mut running = workers.running_variant.iter();
    if !running.all(|&v| v == IDLE || catalog.variant(VariantId(v)).is_some()) {
        return Err("workers.running_variant: an unknown variant".to_owned());
    }
    Ok(())
}

fn check_placed(catalog: &Catalog, window: &Window) -> Result<(), String> {
    let placed = &window.placed;
    let rows = placed.id.len();
    let columns = [
        placed.app.len(),
        placed.arrival.len(),
        placed.deadline.len(),
        placed.worker.len(),
        placed.variant.len(),
        placed.batch.len(),
        placed.state.len(),
    ];
    if columns.iter().any(|&length| length != rows) {
        return Err(lengths("placed"));
    }
    let known = |i: usize| {
        catalog.app(AppId(placed.app[i])).is_some()
            && catalog.worker(WorkerId(placed.worker[i])).is_some()
            && catalog.variant(VariantId(placed.variant[i])).is_some()
    };
    match (0..rows).all(known) {
        true => Ok(()),
        false => Err("placed: an unknown app, worker or variant".to_owned()),
    }
}

fn check_plan(catalog: &Catalog, plan: &Plan) -> Result<(), String> {
    let runs = |worker: WorkerId, variant: VariantId, exit: Option<ExitId>| {
        let variant = catalog.variant(variant);
        let exits = variant.is_some_and(|v| exit.is_none_or(|exit| v.exit(exit).is_some()));
        exits && catalog.worker(worker).is_some()
    };
    let mut dispatches = plan.dispatches.iter();
    if !dispatches.all(|d| runs(d.worker, d.variant, d.exit)) {
        return Err("plan.dispatches: an unknown worker, variant or exit".to_owned());
    }
    let sizes: u64 = plan.dispatches.iter().map(|d| u64::from(d.size)).sum();
    if sizes != plan.members.len() as u64 {
        return Err(lengths("plan.members"));
    }
    let mut lanes = plan.routes.iter().flat_map(|route| &route.lanes);
    let apps = plan.routes.iter().all(|r| catalog.app(r.app).is_some());
    if !apps || !lanes.all(|l| runs(l.worker, l.variant, Some(l.exit))) {
        return Err("plan.routes: an unknown app, worker, variant or exit".to_owned());
    }
    Ok(())
}

fn lengths(column: &str) -> String {
    format!("{column}: of the wrong length")
}
