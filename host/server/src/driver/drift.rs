//! Compares the latencies of batches with the profile, which policies plan with.
//!
//! Like is compared with like: the median of the last batches of one worker, variant, stage range,
//! exit and size, with the profile's median of the same. Metrics have it per variant. The log has
//! it per worker, at most once a minute.
//!
//! Owned by the driver: no locks, and no allocation but for the first batch of a kind.

mod notice;
mod track;

use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{VariantId, WorkerId};
use switchyard_core::profile::Profile;
use switchyard_core::time::{Micros, Time};

use self::notice::{DriftNotice, DriftNotices};
use self::track::{Change, Furthest, Kind, Track};
use super::waiters::Running;
use crate::telemetry::{Counter, Gauge, Registry, names};

/// Compares, counts and logs.
pub(super) struct Drift {
    pool: String,
    catalog: Arc<Catalog>,
    medians: Profile,
    band: f64,
    registry: Registry,
    /// By worker.
    workers: Vec<WorkerDrift>,
}

/// The variants of one worker.
struct WorkerDrift {
    variants: Vec<VariantDrift>,
    /// The number of variants that drift.
    drifting: usize,
    notices: DriftNotices,
}

#[derive(Default)]
struct VariantDrift {
    track: Track,
    meters: Option<DriftMeters>,
}

struct DriftMeters {
    ratio: Gauge,
    episodes: Counter,
}

/// The contents of a line about drift.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    drifting: usize,
    /// Variants with enough batches for a comparison.
    compared: usize,
    variant: VariantId,
    furthest: Furthest,
}

// === impl Drift ===

impl Drift {
    /// `band` is the ratio of observed to profiled latency, either way, past which a variant drifts.
    pub(super) fn new(
        pool: &str,
        catalog: Arc<Catalog>,
        medians: Profile,
        band: f64,
        registry: Registry,
    ) -> Self {
        let of_worker = |_| WorkerDrift::new(catalog.variants.len());
        let workers = catalog.workers.iter().map(of_worker).collect();
        Self {
            pool: pool.to_owned(),
            catalog,
            medians,
            band,
            registry,
            workers,
        }
    }

    /// A worker has run a batch, which `took` this time.
    pub(super) fn observe(&mut self, now: Time, worker: WorkerId, ran: &Running, took: Micros) {
        let kind = Kind {
            from_stage: ran.from_stage,
            to_stage: ran.to_stage,
            exit: ran.exit,
            batch: ran.cost.ceil(),
        };
        let Some(spec) = self.catalog.worker(worker) else {
            return;
        };
        let profiled = self.medians.latency_of(
            spec.kind,
            ran.variant,
            kind.from_stage,
            kind.to_stage,
            kind.exit,
            ran.cost,
        );
        let Some(drift) = self.workers.get_mut(worker.index()) else {
            return;
        };
        let (Some(profiled), Some(variant)) =
            (profiled, drift.variants.get_mut(ran.variant.index()))
        else {
            return; // The profile lacks this kind.
        };
        let change = variant.track.observe(kind, profiled, took, self.band);
        if let Some(furthest) = variant.track.furthest() {
            let meters = variant.meters.get_or_insert_with(|| {
                DriftMeters::new(&self.registry, &self.catalog, worker, ran.variant)
            });
            meters.ratio.set(furthest.ratio);
            if change == Some(Change::Left) {
                meters.episodes.increment(1);
            }
        }
        match change {
            Some(Change::Left) => drift.drifting += 1,
            Some(Change::Back) => drift.drifting -= 1,
            None => {}
        }
        match drift.notices.due(now, drift.drifting) {
            Some(DriftNotice::Drifts) => self.warn(worker),
            Some(DriftNotice::Back) => {
                let (pool, worker) = (&self.pool, worker_name(&self.catalog, worker));
                tracing::info!(pool, worker, "latencies are as profiled again");
            }
            None => {}
        }
    }

    fn warn(&self, worker: WorkerId) {
        let drift = self.workers.get(worker.index());
        let Some(summary) = drift.and_then(WorkerDrift::summary) else {
            return;
        };
        let Furthest {
            kind,
            profiled,
            observed,
            ratio,
        } = summary.furthest;
        let exits = self.catalog.variant(summary.variant).map(|v| &v.exits);
        let exit = kind
            .exit
            .and_then(|exit| exits?.get(exit.index()))
            .map_or("none, parked", |exit| &*exit.name);
        let (app, variant) = variant_names(&self.catalog, summary.variant);
        tracing::warn!(
            pool = self.pool,
            worker = worker_name(&self.catalog, worker),
            drifting = summary.drifting,
            compared = summary.compared,
            app,
            variant,
            stages = format!("{} to {}", kind.from_stage, kind.to_stage),
            exit,
            batch = kind.batch,
            profiled_us = profiled.0,
            observed_us = observed.0,
            ratio,
            "latencies drift from the profile"
        );
    }
}

// === impl WorkerDrift ===

impl WorkerDrift {
    fn new(variants: usize) -> Self {
        let none = VariantDrift::default;
        Self {
            variants: std::iter::repeat_with(none).take(variants).collect(),
            drifting: 0,
            notices: DriftNotices::default(),
        }
    }

    /// None while no variant drifts.
    fn summary(&self) -> Option<Summary> {
        let compared = (0..).map(VariantId).zip(&self.variants);
        let compared = compared
            .filter_map(|(id, variant)| Some((id, &variant.track, variant.track.furthest()?)));
        let drifting = compared.clone().filter(|(_, track, _)| track.is_out());
        let (variant, _, furthest) =
            drifting.max_by(|(.., a), (.., b)| a.away().total_cmp(&b.away()))?;
        Some(Summary {
            drifting: self.drifting,
            compared: compared.count(),
            variant,
            furthest,
        })
    }
}

// === impl DriftMeters ===

impl DriftMeters {
    fn new(registry: &Registry, catalog: &Catalog, worker: WorkerId, variant: VariantId) -> Self {
        let (app, variant) = variant_names(catalog, variant);
        let worker = worker_name(catalog, worker);
        let labels = [("worker", worker), ("app", app), ("variant", variant)];
        Self {
            ratio: registry.gauge(names::DRIFT_RATIO, labels),
            episodes: registry.counter(names::DRIFT_EPISODES, labels),
        }
    }
}

fn worker_name(catalog: &Catalog, worker: WorkerId) -> &str {
    catalog.worker(worker).map_or("", |spec| &*spec.name)
}

/// The app and the variant.
fn variant_names(catalog: &Catalog, variant: VariantId) -> (&str, &str) {
    let known = catalog.variant(variant);
    let app = known.and_then(|known| catalog.app(known.app));
    (
        app.map_or("", |app| &app.name),
        known.map_or("", |known| &known.name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILED: Micros = Micros(1_000);

    #[test]
    fn a_summary_counts_variants_and_names_the_furthest() {
        let kind = |batch| Kind {
            from_stage: 0,
            to_stage: 1,
            exit: None,
            batch,
        };
        let mut drift = WorkerDrift::new(5);
        // Variant 3 lacks batches for a median, variant 4 has none.
        let latencies = [(0, 1_800, 16), (1, 1_000, 16), (2, 250, 16), (3, 9_000, 15)];
        for (variant, latency_us, batches) in latencies {
            for _ in 0..batches {
                let track = &mut drift.variants[variant].track;
                let change = track.observe(kind(8), PROFILED, Micros(latency_us), 1.5);
                drift.drifting += usize::from(change == Some(Change::Left));
            }
        }
        let summary = drift.summary().unwrap();
        assert_eq!((summary.drifting, summary.compared), (2, 3));
        assert_eq!(summary.variant, VariantId(2), "four times as fast");
        assert_eq!(summary.furthest.kind, kind(8));
        assert_eq!(summary.furthest.observed, Micros(250));
        assert_eq!(summary.furthest.ratio, 0.25);
        assert_eq!(WorkerDrift::new(2).summary(), None);
    }
}
