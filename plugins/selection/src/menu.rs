//! One app's models on all workers, and which of them a load allows.

use switchyard_sdk::ladder::Ladder;
use switchyard_sdk::{AppId, Catalog, VariantId, WorkerId};

/// A model and the largest batch that a worker takes at once (adaptive batching).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) variant: VariantId,
    pub(crate) batch_max: usize,
}

/// An app's models, most accurate first.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    models: Vec<Model>,
    /// Where nothing sustains the load: the fastest, in batches as large as it takes.
    pub(crate) fastest: Option<Choice>,
}

/// One model on all workers that can run it.
#[derive(Clone, Debug)]
struct Model {
    variant: VariantId,
    accuracy: f64,
    /// Of a single request, on the slowest worker, in microseconds.
    latency_us: u64,
    /// Requests per second of all workers in batches of 1, 2, and so on, up to the largest that
    /// takes at most half the SLO on each of them.
    throughput_rps: Vec<f64>,
}

// === impl Menu ===

impl Menu {
    /// The models of an app that any worker can run; `ladders` are the workers', in their order.
    pub(crate) fn new(catalog: &Catalog, app: AppId, ladders: &[Ladder]) -> Self {
        let half_us = catalog.app(app).slo / 2;
        let variants = catalog.app(app).variants().iter();
        let mut models: Vec<Model> = variants
            .filter_map(|&variant| Model::new(catalog, variant, half_us, ladders))
            .collect();
        models.sort_by(|a, b| {
            let order = b.accuracy.total_cmp(&a.accuracy);
            order.then(a.latency_us.cmp(&b.latency_us))
        });
        let fastest = models.iter().min_by_key(|model| model.latency_us);
        let fastest = fastest.map(|model| Choice {
            variant: model.variant,
            batch_max: ladders
                .iter()
                .filter_map(|ladder| Some(ladder.rung(model.variant)?.batch_max()))
                .min()
                .unwrap_or(1),
        });
        Self { models, fastest }
    }

    /// Jellyfish+: the most accurate model whose throughput over all workers reaches the load
    /// with batches that take at most half the SLO, and the largest such batch.
    pub(crate) fn sustaining(&self, load_rps: f64) -> Option<Choice> {
        self.models.iter().find_map(|model| {
            let reaches = |rps: &f64| *rps >= load_rps;
            let largest = model.throughput_rps.iter().rposition(reaches)?;
            Some(Choice {
                variant: model.variant,
                batch_max: largest + 1,
            })
        })
    }

    /// INFaaS: of the models that are accurate enough the fastest; where none is, the most
    /// accurate.
    pub(crate) fn accurate(&self, accuracy: f64) -> Option<Choice> {
        let enough = self
            .models
            .iter()
            .filter(|model| model.accuracy >= accuracy);
        let fastest = enough.min_by_key(|model| model.latency_us);
        let found = fastest.or_else(|| self.models.first())?;
        Some(found.alone())
    }
}

// === impl Model ===

impl Model {
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
            accuracy: catalog.variant(variant).accuracy(),
            latency_us: latencies.max()?,
            throughput_rps: (1..=largest).map(throughput).collect(),
        })
    }

    /// In batches that take at most half the SLO, or of one.
    fn alone(&self) -> Choice {
        Choice {
            variant: self.variant,
            batch_max: self.throughput_rps.len().max(1),
        }
    }
}

/// Ladders of all workers for an app, in the workers' order.
pub(crate) fn ladders(catalog: &Catalog, app: AppId) -> Vec<Ladder> {
    let workers = (0..catalog.workers().len() as u32).map(WorkerId);
    workers
        .map(|worker| Ladder::new(catalog, worker, app))
        .collect()
}
