//! The metrics of one pool, written by its driver thread.

use std::collections::BTreeMap;

use metrics::{Counter, Gauge, Histogram};
use switchyard_core::catalog::Catalog;
use switchyard_core::event::Reply;
use switchyard_core::ids::{ExitId, VariantId, WorkerId};
use switchyard_core::policy::FaultKind;
use switchyard_core::request::Outcome;
use switchyard_executor::Finished;

use super::names;
use super::registry::Registry;

/// Handles are made once: writing is an atomic operation.
pub struct PoolMeters {
    registry: Registry,
    apps: Vec<AppMeters>,
    workers: Vec<WorkerMeters>,
    variants: BTreeMap<(VariantId, ExitId), Counter>,
    batch_size: Histogram,
    pending: Gauge,
    queued: Gauge,
    running: Gauge,
    imbalance: Gauge,
    faults: BTreeMap<FaultKind, Counter>,
}

struct AppMeters {
    name: String,
    outcomes: BTreeMap<&'static str, Counter>,
    latency: Histogram,
    missed: Counter,
}

struct WorkerMeters {
    loads: Counter,
    load_time: Histogram,
    resident: Gauge,
    free_bytes: Gauge,
}

// === impl PoolMeters ===

impl PoolMeters {
    /// Meters of the pool `name`, which serves `catalog`.
    pub fn new(registry: &Registry, name: &str, catalog: &Catalog) -> Self {
        let depth = |queue| registry.gauge(names::QUEUE_DEPTH, [("pool", name), ("queue", queue)]);
        let workers = catalog.workers.iter();
        Self {
            apps: catalog
                .apps
                .iter()
                .map(|app| AppMeters::new(registry, &app.name))
                .collect(),
            workers: workers
                .map(|w| WorkerMeters::new(registry, &w.name))
                .collect(),
            variants: variants(registry, catalog),
            batch_size: registry.histogram(names::BATCH_SIZE, [("pool", name)]),
            pending: depth("pending"),
            queued: depth("queued"),
            running: depth("running"),
            imbalance: registry.gauge(names::LEDGER_IMBALANCE, [("pool", name)]),
            faults: BTreeMap::new(),
            registry: registry.clone(),
        }
    }

    /// A request has ended.
    pub(crate) fn ended(&mut self, reply: &Reply) {
        let Some(app) = self.apps.get_mut(reply.app.index()) else {
            return;
        };
        let AppMeters { name, outcomes, .. } = app;
        outcomes
            .entry(reply.outcome.label())
            .or_insert_with_key(|outcome| {
                let labels = [("app", name.as_str()), ("outcome", *outcome)];
                self.registry.counter(names::REQUESTS, labels)
            })
            .increment(1);
        match reply.outcome {
            Outcome::Answered {
                variant,
                exit,
                in_time,
            } => {
                app.answered(reply, in_time);
                if let Some(counter) = self.variants.get(&(variant, exit)) {
                    counter.increment(1);
                }
            }
            Outcome::ShortCircuited { in_time } => app.answered(reply, in_time),
            Outcome::Dropped(_) => app.missed.increment(1),
            Outcome::Rejected(_) | Outcome::Failed(_) | Outcome::Cancelled => {}
        }
    }

    /// A worker is done with a batch of so many requests.
    pub(crate) fn finished(&self, finished: &Finished, requests: usize) {
        self.batch_size.record(requests as f64);
        let Some(worker) = self.workers.get(finished.worker.index()) else {
            return;
        };
        if finished.load.0 > 0 {
            worker.loads.increment(1);
            worker.load_time.record(finished.load.as_secs_f64());
        }
    }

    /// What a worker holds has changed.
    pub(crate) fn residency(&self, worker: WorkerId, resident: usize, free_bytes: u64) {
        if let Some(worker) = self.workers.get(worker.index()) {
            worker.resident.set(resident as f64);
            worker.free_bytes.set(free_bytes as f64);
        }
    }

    /// A policy failed a window.
    pub(crate) fn faulted(&mut self, kind: FaultKind) {
        let registry = &self.registry;
        self.faults
            .entry(kind)
            .or_insert_with(|| registry.counter(names::POLICY_FAULTS, [("kind", kind.label())]))
            .increment(1);
    }

    /// Where requests are, and whether the books balance.
    pub(crate) fn depth(&self, pending: usize, queued: usize, running: usize, imbalance: i64) {
        self.pending.set(pending as f64);
        self.queued.set(queued as f64);
        self.running.set(running as f64);
        self.imbalance.set(imbalance as f64);
    }
}

// === impl AppMeters ===

impl AppMeters {
    fn new(registry: &Registry, name: &str) -> Self {
        let labels = [("app", name)];
        Self {
            name: name.to_owned(),
            outcomes: BTreeMap::new(),
            latency: registry.histogram(names::REQUEST_LATENCY, labels),
            missed: registry.counter(names::DEADLINE_MISSED, labels),
        }
    }

    fn answered(&self, reply: &Reply, in_time: bool) {
        self.latency.record(reply.latency.as_secs_f64());
        if !in_time {
            self.missed.increment(1);
        }
    }
}

// === impl WorkerMeters ===

impl WorkerMeters {
    fn new(registry: &Registry, name: &str) -> Self {
        let labels = [("worker", name)];
        Self {
            loads: registry.counter(names::CACHE_LOADS, labels),
            load_time: registry.histogram(names::CACHE_LOAD_TIME, labels),
            resident: registry.gauge(names::CACHE_RESIDENT, labels),
            free_bytes: registry.gauge(names::CACHE_FREE, labels),
        }
    }
}

fn variants(registry: &Registry, catalog: &Catalog) -> BTreeMap<(VariantId, ExitId), Counter> {
    let mut counters = BTreeMap::new();
    for (v, variant) in (0..).zip(&catalog.variants) {
        let app = catalog.app(variant.app).map_or("", |app| app.name.as_str());
        for (e, exit) in (0..).zip(&variant.exits) {
            let labels = [
                ("app", app),
                ("variant", &*variant.name),
                ("exit", &*exit.name),
            ];
            let counter = registry.counter(names::VARIANT_REQUESTS, labels);
            counters.insert((VariantId(v), ExitId(e)), counter);
        }
    }
    counters
}
