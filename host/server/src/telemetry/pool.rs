//! The metrics of one pool, written by its driver thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::catalog::{Catalog, Variant};
use switchyard_core::event::Reply;
use switchyard_core::ids::{VariantId, WorkerId};
use switchyard_core::policy::FaultKind;
use switchyard_core::request::Outcome;
use switchyard_core::time::Micros;
use switchyard_executor::Residency;

use super::answers::AnswerMeters;
use super::faults::PolicyFaults;
use super::meters::{CountFollower, Counter, Gauge, Histogram, SecondsCounter};
use super::names;
use super::registry::Registry;

/// The address of a slot without a server.
const NO_ADDRESS: &str = "none";

/// Handles are made once: writing is an atomic operation.
pub struct PoolMeters {
    registry: Registry,
    apps: Vec<AppMeters>,
    workers: Vec<WorkerMeters>,
    answers: AnswerMeters,
    memory: Vec<VariantMemory>,
    batch_size: Histogram,
    pending: Gauge,
    queued: Gauge,
    running: Gauge,
    imbalance: Gauge,
    desired: Gauge,
    fallback_active: Gauge,
    faults: Vec<PolicyFaults>,
    /// Observed over profiled load times, once both are known.
    load_ratios: BTreeMap<(WorkerId, VariantId), Gauge>,
    _pending_max: Gauge,
    pool: String,
}

struct AppMeters {
    name: String,
    outcomes: BTreeMap<&'static str, Counter>,
    slo: Micros,
    latency_over_slo: Histogram,
    missed: Counter,
}

struct WorkerMeters {
    name: String,
    up: Gauge,
    /// The address of its server, if it is on another machine.
    address: Option<(String, Gauge)>,
    busy: SecondsCounter,
    restarts: Counter,
    loads: CountFollower,
    load_time: Histogram,
    resident: Gauge,
    resident_bytes: Gauge,
    free_bytes: Gauge,
    hits: CountFollower,
    misses: CountFollower,
    evictions: CountFollower,
    load_errors: CountFollower,
}

/// The memory and load times of a variant.
struct VariantMemory {
    /// `app/variant`.
    name: String,
    bytes: u64,
    /// Load time in the catalog, by worker.
    told: Vec<Micros>,
}

// === impl PoolMeters ===

impl PoolMeters {
    /// Meters of the pool `name`, which serves `catalog` and lets `pending_max` requests wait.
    pub fn new(registry: &Registry, name: &str, catalog: &Catalog, pending_max: usize) -> Self {
        let bound = registry.gauge(names::PENDING_MAX, [("pool", name)]);
        bound.set(pending_max as f64);
        let depth = |queue| registry.gauge(names::QUEUE_DEPTH, [("pool", name), ("queue", queue)]);
        let workers = catalog.workers.iter();
        Self {
            apps: catalog
                .apps
                .iter()
                .map(|app| AppMeters::new(registry, &app.name, app.slo))
                .collect(),
            workers: workers
                .map(|w| WorkerMeters::new(registry, name, &w.name))
                .collect(),
            answers: AnswerMeters::new(registry, catalog),
            memory: (0..)
                .map(VariantId)
                .zip(&catalog.variants)
                .map(|(id, variant)| VariantMemory::new(id, variant, catalog))
                .collect(),
            batch_size: registry.histogram(names::BATCH_SIZE, [("pool", name)]),
            pending: depth("pending"),
            queued: depth("queued"),
            running: depth("running"),
            imbalance: registry.gauge(names::LEDGER_IMBALANCE, [("pool", name)]),
            desired: registry.gauge(names::WORKERS_DESIRED, [("pool", name)]),
            fallback_active: registry.gauge(names::FALLBACK_ACTIVE, [("pool", name)]),
            faults: Vec::new(),
            load_ratios: BTreeMap::new(),
            _pending_max: bound,
            pool: name.to_owned(),
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
                self.answers.exit(reply, (variant, exit), in_time);
            }
            Outcome::ShortCircuited { in_time } => {
                app.answered(reply, in_time);
                self.answers.short_circuit(reply);
            }
            Outcome::Dropped(_) => app.missed.increment(1),
            Outcome::Rejected(_) | Outcome::Failed(_) | Outcome::Cancelled => {}
        }
    }

    /// A worker has finished a batch of this number of requests.
    pub(crate) fn finished(&self, worker: WorkerId, requests: usize, compute: Micros) {
        self.batch_size.record(requests as f64);
        if let Some(worker) = self.workers.get(worker.index()) {
            worker.busy.add_us(compute.0);
        }
    }

    /// A worker has made a variant resident; `took` is the load time, 0 if it was resident before.
    pub(crate) fn loaded(&mut self, worker: WorkerId, variant: VariantId, took: Micros) {
        let known = self.memory.get(variant.index());
        let (Some(meters), Some(known)) = (self.workers.get(worker.index()), known) else {
            return;
        };
        if took == Micros::ZERO {
            return; // It was there already.
        }
        meters.load_time.record(took.as_secs_f64());
        let told = known.told.get(worker.index()).copied().unwrap_or_default();
        if told > Micros::ZERO {
            let labels = [
                ("worker", meters.name.as_str()),
                ("variant", known.name.as_str()),
            ];
            let ratio = self.load_ratios.entry((worker, variant));
            let ratio =
                ratio.or_insert_with(|| self.registry.gauge(names::CACHE_LOAD_RATIO, labels));
            ratio.set(took.0 as f64 / told.0 as f64);
        }
    }

    /// The resident variants of a worker have changed.
    pub(crate) fn residency(&mut self, worker: WorkerId, holds: &Residency) {
        let Some(worker) = self.workers.get_mut(worker.index()) else {
            return;
        };
        let bytes = |variant: &VariantId| self.memory.get(variant.index()).map_or(0, |v| v.bytes);
        let resident: u64 = holds.resident.iter().map(bytes).sum();
        worker.resident.set(holds.resident.len() as f64);
        worker.resident_bytes.set(resident as f64);
        worker.free_bytes.set(holds.free_bytes as f64);
        worker.hits.follow(holds.counts.hits);
        worker.misses.follow(holds.counts.misses);
        worker.evictions.follow(holds.counts.evictions);
        worker.loads.follow(holds.counts.loads);
        worker.load_errors.follow(holds.counts.load_errors);
    }

    /// A policy takes over: its faults are counted from 0, so that a rate has a first value.
    pub(crate) fn policy(&mut self, label: &str) {
        self.faults_of(label);
    }

    /// A policy failed a window.
    pub(crate) fn faulted(&mut self, label: &str, kind: FaultKind) {
        self.faults_of(label).count(kind);
    }

    /// The pool holds these policies and no others: the series of the others leave. A request under
    /// way that an earlier one decided brings its series back until the next switch.
    pub(crate) fn hold_policies<'a>(&mut self, labels: impl Iterator<Item = &'a Arc<str>>) {
        let names: Vec<&str> = labels.flat_map(|label| names::policies_of(label)).collect();
        let held = |policy: &str| names.contains(&policy);
        self.faults.retain(|faults| held(faults.policy()));
        self.answers.retain(held);
    }

    fn faults_of(&mut self, label: &str) -> &PolicyFaults {
        let policy = names::policy_of(label);
        let known = self.faults.iter();
        let at = known.clone().position(|faults| faults.policy() == policy);
        let at = at.unwrap_or_else(|| {
            let faults = PolicyFaults::new(&self.registry, &self.pool, policy);
            self.faults.push(faults);
            self.faults.len() - 1
        });
        &self.faults[at]
    }

    /// The fallback serves, or a policy does.
    pub(crate) fn fallback_serves(&self, serves: bool) {
        self.fallback_active.set(f64::from(u8::from(serves)));
    }

    /// A worker is up, or lost.
    pub(crate) fn worker_up(&self, worker: WorkerId, up: bool) {
        if let Some(worker) = self.workers.get(worker.index()) {
            worker.up.set(f64::from(u8::from(up)));
        }
    }

    /// The address of a worker's server; none while no server has its slot.
    pub(crate) fn worker_address(&mut self, worker: WorkerId, address: Option<&str>) {
        let Some(worker) = self.workers.get_mut(worker.index()) else {
            return;
        };
        let address = address.unwrap_or(NO_ADDRESS);
        if worker
            .address
            .as_ref()
            .is_some_and(|(shown, _)| shown == address)
        {
            return;
        }
        let labels = [
            ("pool", self.pool.as_str()),
            ("worker", worker.name.as_str()),
            ("address", address),
        ];
        let gauge = self.registry.gauge(names::WORKER_ADDRESS, labels);
        gauge.set(1.0);
        worker.address = Some((address.to_owned(), gauge));
    }

    /// A worker was started anew.
    pub(crate) fn restarted(&self, worker: WorkerId) {
        if let Some(worker) = self.workers.get(worker.index()) {
            worker.restarts.increment(1);
        }
    }

    /// The workers that the load of the last minute asks for.
    pub(crate) fn desired(&self, workers: u32) {
        self.desired.set(f64::from(workers));
    }

    /// Requests by state, and the imbalance of the ledger.
    pub(crate) fn depth(&self, pending: usize, queued: usize, running: usize, imbalance: i64) {
        self.pending.set(pending as f64);
        self.queued.set(queued as f64);
        self.running.set(running as f64);
        self.imbalance.set(imbalance as f64);
    }
}

// === impl VariantMemory ===

impl VariantMemory {
    fn new(id: VariantId, variant: &Variant, catalog: &Catalog) -> Self {
        let app = catalog.app(variant.app).map_or("", |app| app.name.as_str());
        let workers = catalog.workers.iter();
        Self {
            name: format!("{app}/{}", variant.name),
            bytes: variant.memory_bytes,
            told: workers
                .map(|worker| catalog.profile.load_time(worker.kind, id))
                .collect(),
        }
    }
}

// === impl AppMeters ===

impl AppMeters {
    fn new(registry: &Registry, name: &str, slo: Micros) -> Self {
        let labels = [("app", name)];
        // From 0, so that a rate has a first value.
        let outcomes = Outcome::LABELS.map(|outcome| {
            let labels = [("app", name), ("outcome", outcome)];
            (outcome, registry.counter(names::REQUESTS, labels))
        });
        Self {
            name: name.to_owned(),
            outcomes: outcomes.into_iter().collect(),
            slo,
            latency_over_slo: registry.histogram(names::LATENCY_OVER_SLO, labels),
            missed: registry.counter(names::DEADLINE_MISSED, labels),
        }
    }

    fn answered(&self, reply: &Reply, in_time: bool) {
        let slo = self.slo.0.max(1) as f64;
        self.latency_over_slo.record(reply.latency.0 as f64 / slo);
        if !in_time {
            self.missed.increment(1);
        }
    }
}

// === impl WorkerMeters ===

impl WorkerMeters {
    fn new(registry: &Registry, pool: &str, name: &str) -> Self {
        let labels = [("worker", name)];
        let both = [("pool", pool), ("worker", name)];
        let follower = |counter| CountFollower::new(registry.counter(counter, labels));
        let (up, restarts) = (
            registry.gauge(names::WORKER_UP, both),
            registry.counter(names::WORKER_RESTARTS, both),
        );
        up.set(1.0);
        Self {
            name: name.to_owned(),
            up,
            address: None,
            busy: registry.seconds(names::WORKER_BUSY, both),
            restarts,
            loads: follower(names::CACHE_LOADS),
            load_time: registry.histogram(names::CACHE_LOAD_TIME, labels),
            resident: registry.gauge(names::CACHE_RESIDENT, labels),
            resident_bytes: registry.gauge(names::CACHE_BYTES, labels),
            hits: follower(names::CACHE_HITS),
            misses: follower(names::CACHE_MISSES),
            evictions: follower(names::CACHE_EVICTIONS),
            load_errors: follower(names::CACHE_LOAD_ERRORS),
            free_bytes: registry.gauge(names::CACHE_FREE, labels),
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::catalog::{Capabilities, WorkerSpec};
    use switchyard_core::ids::KindId;
    use switchyard_executor::CacheCounts;

    use super::*;

    /// Of a pool with the worker `w0`.
    fn meters(registry: &Registry, pending_max: usize) -> PoolMeters {
        let worker = WorkerSpec {
            name: "w0".to_owned(),
            kind: KindId(0),
            memory_bytes: 10,
            queue_max: 4,
            parked_max: 4,
            can: Capabilities::ALL,
            transfer: Micros::ZERO,
            outstanding: 1,
        };
        let catalog = Catalog {
            workers: vec![worker],
            ..Catalog::default()
        };
        PoolMeters::new(registry, "main", &catalog, pending_max)
    }

    fn check(registry: &Registry, lines: &[&str]) {
        let text = registry.render();
        for line in lines {
            assert!(text.lines().any(|shown| shown == *line), "{line}: {text}");
        }
    }

    #[test]
    fn a_pool_that_is_refused_leaves_the_gauges_of_the_serving_one() {
        let registry = Registry::new();
        let serving = meters(&registry, 100);
        serving.fallback_serves(false);
        let start = || {
            let starting = meters(&registry, 200);
            starting.fallback_serves(true);
            starting
        };
        let as_before = [
            "switchyard_fallback_active{pool=\"main\"} 0",
            "switchyard_pending_max{pool=\"main\"} 100",
        ];
        let refused = start();
        check(&registry, &as_before);
        drop(refused);
        check(&registry, &as_before);
        let _next = start();
        drop(serving);
        check(
            &registry,
            &[
                "switchyard_fallback_active{pool=\"main\"} 1",
                "switchyard_pending_max{pool=\"main\"} 200",
            ],
        );
    }

    #[test]
    fn the_counts_of_a_model_cache_go_on_in_the_next_pool() {
        let registry = Registry::new();
        let report = |meters: &mut PoolMeters, hits| {
            let counts = CacheCounts {
                hits,
                loads: 1,
                ..CacheCounts::default()
            };
            let holds = Residency {
                counts,
                ..Residency::default()
            };
            meters.residency(WorkerId(0), &holds);
        };
        let mut before = meters(&registry, 100);
        report(&mut before, 3);
        report(&mut before, 5);
        let mut after = meters(&registry, 100);
        report(&mut after, 2);
        report(&mut before, 6);
        drop(before);
        report(&mut after, 4);
        check(
            &registry,
            &[
                "switchyard_model_cache_hits_total{worker=\"w0\"} 10",
                "switchyard_model_cache_loads_total{worker=\"w0\"} 2",
            ],
        );
    }
}
