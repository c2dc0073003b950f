//! From the counts of a run to its report.

use std::collections::BTreeMap;

use switchyard_core::catalog::Catalog;
use switchyard_core::time::Micros;

use super::meters::Meters;
use super::predictions;
use super::report::{BatchReport, EnergyReport, PartReport, Report, Served};
use super::summary::Summary;
use super::sums::RequestSums;

/// The driver's part of a report.
pub(crate) struct Closing<'a> {
    pub(crate) policy: String,
    pub(crate) seed: u64,
    pub(crate) simulated: Micros,
    pub(crate) windows: u64,
    pub(crate) abandoned: u64,
    pub(crate) phases: &'a [String],
    pub(crate) ledger: &'a BTreeMap<&'static str, u64>,
}

// === impl Closing ===

impl Closing<'_> {
    /// The report of a run that has ended.
    pub(crate) fn report(self, meters: Meters, catalog: &Catalog) -> Report {
        let seconds = self.simulated.as_secs_f64();
        let total = Summary::new(&RequestSums::total(&meters.sums), seconds);
        let by_app = meters.sums.chunks(meters.phases).map(RequestSums::total);
        let apps: Vec<PartReport> = by_app
            .zip(&catalog.apps)
            .map(|(sums, app)| PartReport {
                name: app.name.clone(),
                summary: Summary::new(&sums, seconds),
            })
            .collect();
        let ledger = self.ledger.iter();
        Report {
            phases: by_phase(&meters, self.phases, seconds),
            batches: batches(&meters.sizes),
            served: served(&meters.served, &apps, catalog),
            energy: energy(&meters, &total),
            predictions: predictions::report(&meters.predictions, catalog),
            policy: self.policy,
            seed: self.seed,
            simulated_us: self.simulated,
            windows: self.windows,
            total,
            apps,
            workers: meters.workers,
            faults: meters.faults,
            taken_off: meters.policies_taken_off,
            abandoned: self.abandoned,
            ledger: ledger
                .map(|(&outcome, &count)| (outcome.to_owned(), count))
                .collect(),
        }
    }
}

fn by_phase(meters: &Meters, names: &[String], seconds: f64) -> Vec<PartReport> {
    if meters.phases < 2 {
        return Vec::new();
    }
    let phase = |(at, name): (usize, &String)| {
        let sums = meters.sums.iter().skip(at).step_by(meters.phases);
        PartReport {
            name: name.clone(),
            summary: Summary::new(&RequestSums::total(sums), seconds),
        }
    };
    names.iter().enumerate().map(phase).collect()
}

fn batches(sizes: &[u64]) -> BatchReport {
    let count = sizes.iter().sum();
    let requests: u64 = (0..).zip(sizes).map(|(size, n)| size * n).sum();
    BatchReport {
        count,
        size_mean: (count > 0).then(|| requests as f64 / count as f64),
        sizes: sizes.to_vec(),
    }
}

fn served(served: &[Vec<u64>], apps: &[PartReport], catalog: &Catalog) -> Vec<Served> {
    let variants = catalog.variants.iter().zip(served);
    variants
        .flat_map(|(variant, counts)| {
            let app = &apps[variant.app.index()];
            let answers = app.summary.answered().max(1) as f64;
            let exits = variant.exits.iter().zip(counts);
            exits.map(move |(exit, &answered)| Served {
                app: app.name.clone(),
                variant: variant.name.clone(),
                exit: exit.name.clone(),
                answered,
                share: answered as f64 / answers,
            })
        })
        .collect()
}

fn energy(meters: &Meters, total: &Summary) -> Option<EnergyReport> {
    let answered = total.answered();
    if meters.energy_unknown > 0 || meters.energy_uj == 0 || answered == 0 {
        return None;
    }
    let total_j = meters.energy_uj as f64 / 1e6;
    let per_answer_j = total_j / answered as f64;
    let delay_s = total.latency.mean_ms / 1e3;
    Some(EnergyReport {
        total_j,
        per_answer_j,
        answers_per_j: per_answer_j.recip(),
        edp_js: per_answer_j * delay_s,
        ed2p_js2: per_answer_j * delay_s * delay_s,
    })
}
