//! The load of a pool that counts as 1.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, ExitId, VariantId, WorkerId};

/// Share of an SLO that a batch may take: the request waits for the batch before it.
const BATCH_SHARE: u64 = 2;

/// Requests per second, in equal shares of all apps, with which every worker is always busy on the
/// fastest choice of variant, exit and batch whose latency is at most half of the app's SLO (without
/// one, the fastest single request). Each worker serves all apps that it can.
pub(super) fn capacity_per_s(catalog: &Catalog) -> f64 {
    let workers = (0..catalog.workers.len() as u32).map(WorkerId);
    workers.map(|worker| of_worker(catalog, worker)).sum()
}

fn of_worker(catalog: &Catalog, worker: WorkerId) -> f64 {
    let times_us = catalog.app_ids();
    let times_us: Vec<f64> = times_us
        .filter_map(|app| fastest_us(catalog, worker, app))
        .collect();
    match times_us.iter().sum::<f64>() {
        sum if sum > 0.0 => 1e6 * times_us.len() as f64 / sum,
        _ => 0.0,
    }
}

/// The shortest time of a request in a batch.
fn fastest_us(catalog: &Catalog, worker: WorkerId, app: AppId) -> Option<f64> {
    let half_us = catalog.app(app)?.slo.0 / BATCH_SHARE;
    let in_batches = choices(catalog, app).filter_map(|(variant, exit, largest)| {
        let batches = (0..u32::BITS).map(|power| 1 << power);
        let batches = batches.take_while(|batch| *batch <= largest);
        let latency = |batch| Some((batch, catalog.latency(worker, variant, exit, batch)?.0));
        let fitting = batches
            .filter_map(latency)
            .filter(|(_, latency_us)| *latency_us <= half_us);
        let per_request = fitting.map(|(batch, latency_us)| latency_us as f64 / f64::from(batch));
        per_request.reduce(f64::min)
    });
    in_batches.reduce(f64::min).or_else(|| {
        let alone = choices(catalog, app)
            .filter_map(|(variant, exit, _)| catalog.latency(worker, variant, exit, 1));
        alone.map(|latency| latency.0 as f64).reduce(f64::min)
    })
}

/// Variants and exits of an app, with the largest batch.
fn choices(catalog: &Catalog, app: AppId) -> impl Iterator<Item = (VariantId, ExitId, u32)> + '_ {
    catalog.variants_of(app).flat_map(|(id, variant)| {
        let exits = (0..variant.exits.len() as u32).map(ExitId);
        exits.map(move |exit| (id, exit, variant.max_batch.max(1)))
    })
}
