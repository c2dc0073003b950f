//! One app's models on all workers, and the model for a load.

use switchyard_sdk::ladder::Ladder;
use switchyard_sdk::{AppId, Catalog, VariantId, WorkerId};

/// A model and its largest batch (adaptive batching, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    pub(crate) variant: VariantId,
    pub(crate) batch_max: usize,
}

/// An app's models, most accurate first.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    models: Vec<MenuModel>,
    /// The fastest model with its largest batch, if no model sustains the load.
    pub(crate) fastest: Option<ModelChoice>,
}

/// One model on all workers that can run it.
#[derive(Clone, Debug)]
struct MenuModel {
    variant: VariantId,
    accuracy: f64,
    /// Latency of one request on the slowest worker, in microseconds.
    latency_us: u64,
    /// Requests per second of all workers, by batch from 1, up to the largest batch that takes at
    /// most half the SLO on each worker.
    throughput_rps: Vec<f64>,
}

// === impl Menu ===

impl Menu {
    /// The models of an app that any worker can run; `ladders` has one per worker.
    pub(crate) fn new(catalog: &Catalog, app: AppId, ladders: &[Ladder]) -> Self {
        let half_us = catalog.app(app).slo / 2;
        let variants = catalog.app(app).variants().iter();
        let mut models: Vec<MenuModel> = variants
            .filter_map(|&variant| MenuModel::new(catalog, variant, half_us, ladders))
            .collect();
        models.sort_by(|a, b| {
            let order = b.accuracy.total_cmp(&a.accuracy);
            order.then(a.latency_us.cmp(&b.latency_us))
        });
        let fastest = models.iter().min_by_key(|model| model.latency_us);
        let fastest = fastest.map(|model| ModelChoice {
            variant: model.variant,
            batch_max: ladders
                .iter()
                .filter_map(|ladder| Some(ladder.rung(model.variant)?.batch_max()))
                .min()
                .unwrap_or(1),
        });
        Self { models, fastest }
    }

    /// Jellyfish+ (section 7): the most accurate model whose throughput over all workers reaches
    /// the load with batches that take at most half the SLO; with the largest such batch.
    pub(crate) fn sustaining(&self, load_rps: f64) -> Option<ModelChoice> {
        self.models.iter().find_map(|model| {
            let reaches = |rps: &f64| *rps >= load_rps;
            let largest = model.throughput_rps.iter().rposition(reaches)?;
            Some(ModelChoice {
                variant: model.variant,
                batch_max: largest + 1,
            })
        })
    }

    /// INFaaS (appendix H): the fastest model that reaches `accuracy`; if none does, the most
    /// accurate.
    pub(crate) fn accurate(&self, accuracy: f64) -> Option<ModelChoice> {
        let enough = self
            .models
            .iter()
            .filter(|model| model.accuracy >= accuracy);
        let fastest = enough.min_by_key(|model| model.latency_us);
        let found = fastest.or_else(|| self.models.first())?;
        Some(found.alone())
    }
}

// === impl MenuModel ===

impl MenuModel {
    fn new(
        catalog: &Catalog,
        variant: VariantId,
        half_us: u64,
        ladders: &[Ladder],
    ) -> Option<Self> {
        let rungs = ladders.iter().filter_map(|ladder| ladder.rung(variant));
        let rungs: Vec<_> = rungs.collect();
        let largest = rungs
            .iter()
            .map(|rung| rung.largest_within(half_us))
            .min()?;
        let throughput = |batch: usize| {
            let latencies = rungs.iter().filter_map(|rung| rung.latency_us(batch));
            let rates = latencies.map(|us| batch as f64 * 1e6 / us.max(1) as f64);
            rates.sum::<f64>()
        };
        let latencies = rungs.iter().filter_map(|rung| rung.latency_us(1));
        Some(Self {
            variant,
            accuracy: catalog.variant(variant).quality(),
            latency_us: latencies.max()?,
            throughput_rps: (1..=largest).map(throughput).collect(),
        })
    }

    /// With the largest batch that takes at most half the SLO, at least 1.
    fn alone(&self) -> ModelChoice {
        ModelChoice {
            variant: self.variant,
            batch_max: self.throughput_rps.len().max(1),
        }
    }
}

/// The ladders of an app, one per worker.
pub(crate) fn ladders(catalog: &Catalog, app: AppId) -> Vec<Ladder> {
    let workers = (0..catalog.workers().len() as u32).map(WorkerId);
    workers
        .map(|worker| Ladder::new(catalog, worker, app))
        .collect()
}
