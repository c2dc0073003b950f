//! Catalogs line by line: each method describes the entry added last.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::{Capabilities, Catalog, Penalty, Task};

/// Builds a catalog. Methods that describe an app, a variant or a worker change the one
/// added last.
#[derive(Clone)]
pub struct CatalogBuilder {
    raw: raw::Catalog,
    /// Rows of `profile` with their kind; none: for all kinds.
    rows: Vec<(Option<u32>, raw::ProfileRow)>,
    /// Rows of `loads`, likewise.
    loads: Vec<(Option<u32>, raw::LoadRow)>,
    /// Kind, variant, base and slope of latencies that are linear in the batch.
    linear: Vec<(Option<u32>, u32, u64, u64)>,
}

/// Memory of a worker by default: enough for every variant.
const PLENTY: u64 = 1 << 40;

// === impl CatalogBuilder ===

impl CatalogBuilder {
    /// An empty catalog.
    #[allow(clippy::new_without_default)] // A start to build on, not a default.
    pub fn new() -> Self {
        Self {
            raw: raw::Catalog {
                generation: 1,
                apps: Vec::new(),
                variants: Vec::new(),
                kinds: Vec::new(),
                workers: Vec::new(),
                percentile: 0.95,
                profile: Vec::new(),
                loads: Vec::new(),
            },
            rows: Vec::new(),
            loads: Vec::new(),
            linear: Vec::new(),
        }
    }

    /// An app: 100 ms, sigmoid penalty, Jeffreys prior, even frequencies.
    pub fn app(mut self, name: &str, classes: &[&str]) -> Self {
        self.raw.apps.push(raw::App {
            name: name.to_owned(),
            task: Task::Classify,
            classes: classes.iter().map(|&class| class.to_owned()).collect(),
            slo: 100_000,
            penalty: Penalty::Sigmoid,
            prior: vec![0.5; classes.len()],
            frequencies: vec![1.0 / classes.len() as f64; classes.len()],
            sneakpeek: None,
            drops_late: false,
        });
        self
    }

    /// An app that does not classify: 100 ms, sigmoid penalty. Its variants are
    /// [`quality`](Self::quality) variants.
    pub fn task_app(self, name: &str, task: Task) -> Self {
        let mut made = self.app(name, &[]);
        made.last_app().task = task;
        made
    }

    /// The app's deadline from arrival.
    pub fn slo_us(mut self, slo_us: u64) -> Self {
        self.last_app().slo = slo_us;
        self
    }

    /// The app's penalty.
    pub fn penalty(mut self, penalty: Penalty) -> Self {
        self.last_app().penalty = penalty;
        self
    }

    /// The app's prior over classes.
    pub fn prior(mut self, prior: &[f64]) -> Self {
        self.last_app().prior = prior.to_vec();
        self
    }

    /// The app's class frequencies. The profiled accuracies of variants added later follow from
    /// them.
    pub fn frequencies(mut self, frequencies: &[f64]) -> Self {
        self.last_app().frequencies = frequencies.to_vec();
        self
    }

    /// Gives the app a SneakPeek model with this profiled accuracy.
    pub fn sneakpeek(mut self, neighbours: u32, accuracy: f64) -> Self {
        let app = self.last_app();
        app.sneakpeek = Some(raw::SneakpeekModel {
            neighbours,
            accuracy,
            recall: vec![accuracy; app.classes.len()],
        });
        self
    }

    /// The recall of the app's SneakPeek model.
    ///
    /// # Panics
    /// The app has no SneakPeek model.
    pub fn sneakpeek_recall(mut self, recall: &[f64]) -> Self {
        let model = self.last_app().sneakpeek.as_mut();
        model.expect("a SneakPeek model").recall = recall.to_vec();
        self
    }

    /// A variant of the app: one stage, one exit, batches up to 8.
    pub fn variant(mut self, name: &str, recall: &[f64]) -> Self {
        let exit = self.exit_after("final", 1, recall);
        self.raw.variants.push(raw::ModelVariant {
            name: name.to_owned(),
            app: self.raw.apps.len() as u32 - 1,
            stages: 1,
            exits: vec![exit],
            memory_bytes: 1_000_000,
            max_batch: 8,
        });
        self
    }

    /// A variant without recall: one stage, one exit, batches up to 8. None: its quality is unknown.
    pub fn quality(self, name: &str, quality: Option<f64>) -> Self {
        let mut made = self.variant(name, &[]);
        made.last_variant().exits[0].quality = quality;
        made
    }

    /// The variant's number of stages; its last exit moves along.
    pub fn stages(mut self, stages: u32) -> Self {
        let variant = self.last_variant();
        variant.stages = stages;
        variant
            .exits
            .last_mut()
            .expect("has a last exit")
            .after_stage = stages;
        self
    }

    /// An exit before the variant's last one.
    pub fn early_exit(mut self, name: &str, after_stage: u32, recall: &[f64]) -> Self {
        let exit = self.exit_after(name, after_stage, recall);
        let exits = &mut self.last_variant().exits;
        exits.insert(exits.len() - 1, exit);
        self
    }

    /// The largest batch of the variant.
    pub fn max_batch(mut self, max_batch: u32) -> Self {
        self.last_variant().max_batch = max_batch;
        self
    }

    /// Memory the variant takes.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.last_variant().memory_bytes = bytes;
        self
    }

    /// Latency of the variant to its last exit, batches 1 to the largest:
    /// `base_us + per_request_us * batch`; for early exits in proportion to their stages.
    pub fn latency(mut self, base_us: u64, per_request_us: u64) -> Self {
        self.linear
            .push((None, self.variant_index(), base_us, per_request_us));
        self
    }

    /// As [`latency`](Self::latency) for one kind of worker.
    pub fn latency_on(mut self, kind: &str, base_us: u64, per_request_us: u64) -> Self {
        let kind = self.kind(kind);
        self.linear
            .push((Some(kind), self.variant_index(), base_us, per_request_us));
        self
    }

    /// A measured latency of the variant to its last exit.
    pub fn latency_at(mut self, batch: u32, latency_us: u64) -> Self {
        let stages = self.last_variant().stages;
        self.stage_row(0, stages, true, batch, latency_us);
        self
    }

    /// A measured latency of a stage range; `head`: with the head of the exit that follows it.
    pub fn stage_latency(
        mut self,
        from_stage: u32,
        to_stage: u32,
        head: bool,
        batch: u32,
        latency_us: u64,
    ) -> Self {
        self.stage_row(from_stage, to_stage, head, batch, latency_us);
        self
    }

    /// Time to make the variant resident on any worker.
    pub fn load_us(mut self, latency_us: u64) -> Self {
        let row = raw::LoadRow {
            kind: 0,
            variant: self.variant_index(),
            latency: latency_us,
        };
        self.loads.push((None, row));
        self
    }

    /// A worker of kind `cpu` whose queue holds 4 batches.
    pub fn worker(self, name: &str) -> Self {
        self.worker_of(name, "cpu")
    }

    /// A worker of a kind by name; a new name makes a new kind.
    pub fn worker_of(mut self, name: &str, kind: &str) -> Self {
        let kind = self.kind(kind);
        self.raw.workers.push(raw::Worker {
            name: name.to_owned(),
            kind,
            memory_bytes: PLENTY,
            queue_max: 4,
            parked_max: 64,
            can: Capabilities::all(),
            transfer: 0,
        });
        self
    }

    /// Batches that may wait in the worker's queue.
    pub fn queue_max(mut self, batches: u32) -> Self {
        self.raw
            .workers
            .last_mut()
            .expect("a worker comes first")
            .queue_max = batches;
        self
    }

    /// Capabilities of the worker; all by default.
    pub fn can(mut self, can: Capabilities) -> Self {
        let worker = self.raw.workers.last_mut();
        worker.expect("a worker comes first").can = can;
        self
    }

    /// Memory of the worker.
    pub fn worker_memory_bytes(mut self, bytes: u64) -> Self {
        self.raw
            .workers
            .last_mut()
            .expect("a worker comes first")
            .memory_bytes = bytes;
        self
    }

    /// The catalog.
    ///
    /// # Panics
    /// It does not hold together.
    pub fn build(self) -> Catalog {
        Catalog::new(self.raw()).expect("the catalog holds together")
    }

    /// The catalog in the contract's type.
    pub fn raw(mut self) -> raw::Catalog {
        let kinds = 0..self.raw.kinds.len() as u32;
        for &(kind, variant, base_us, per_request_us) in &self.linear {
            self.rows.extend(linear_rows(
                &self.raw,
                kind,
                variant,
                base_us,
                per_request_us,
            ));
        }
        for kind in kinds {
            let of_kind = |only: &Option<u32>| only.is_none_or(|only| only == kind);
            let rows = self.rows.iter().filter(|(only, _)| of_kind(only));
            self.raw
                .profile
                .extend(rows.map(|(_, row)| raw::ProfileRow { kind, ..*row }));
            let loads = self.loads.iter().filter(|(only, _)| of_kind(only));
            self.raw
                .loads
                .extend(loads.map(|(_, row)| raw::LoadRow { kind, ..*row }));
        }
        self.raw
    }

    fn last_app(&mut self) -> &mut raw::App {
        self.raw.apps.last_mut().expect("an app comes first")
    }

    fn last_variant(&mut self) -> &mut raw::ModelVariant {
        self.raw.variants.last_mut().expect("a variant comes first")
    }

    fn variant_index(&self) -> u32 {
        self.raw.variants.len() as u32 - 1
    }

    fn kind(&mut self, name: &str) -> u32 {
        let found = self.raw.kinds.iter().position(|kind| kind == name);
        let at = found.unwrap_or_else(|| {
            self.raw.kinds.push(name.to_owned());
            self.raw.kinds.len() - 1
        });
        at as u32
    }

    fn exit_after(&mut self, name: &str, after_stage: u32, recall: &[f64]) -> raw::ModelExit {
        let frequencies = &self.last_app().frequencies;
        raw::ModelExit {
            name: name.to_owned(),
            after_stage,
            quality: Some(crate::accuracy::expected(frequencies, recall)),
            recall: recall.to_vec(),
        }
    }

    fn stage_row(&mut self, from: u32, to: u32, head: bool, batch: u32, latency: u64) {
        let exits = &self.last_variant().exits;
        let exit = exits.iter().position(|exit| head && exit.after_stage == to);
        let row = raw::ProfileRow {
            kind: 0,
            variant: self.variant_index(),
            from_stage: from,
            to_stage: to,
            exit: exit.map(|exit| exit as u32),
            batch,
            latency,
            energy_uj: None,
        };
        self.rows.push((None, row));
    }
}

fn linear_rows(
    catalog: &raw::Catalog,
    kind: Option<u32>,
    variant: u32,
    base_us: u64,
    per_request_us: u64,
) -> Vec<(Option<u32>, raw::ProfileRow)> {
    let found = &catalog.variants[variant as usize];
    let mut rows = Vec::new();
    for (exit, found_exit) in (0u32..).zip(&found.exits) {
        for batch in 1..=found.max_batch {
            let whole = base_us + per_request_us * u64::from(batch);
            let row = raw::ProfileRow {
                kind: 0,
                variant,
                from_stage: 0,
                to_stage: found_exit.after_stage,
                exit: Some(exit),
                batch,
                latency: whole * u64::from(found_exit.after_stage) / u64::from(found.stages),
                energy_uj: None,
            };
            rows.push((kind, row));
        }
    }
    rows
}
