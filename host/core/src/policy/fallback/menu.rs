//! The choices of a catalog, looked up once per catalog instead of once per request.

use crate::capacity::{Capacity, EfficientBatch};
use crate::catalog::Catalog;
use crate::ids::{AppId, ExitId, KindId, VariantId, WorkerId};
use crate::time::Micros;

/// Batches that the fallback lets wait behind a running one: enough to keep a worker busy,
/// few enough that a policy that comes back finds most decisions still open.
const QUEUE_DEPTH: u32 = 1;

/// Largest batch whose latency is kept; latencies of larger ones come from the profile.
const BATCHES_KEPT: u32 = 64;

/// Exits by class of workers and app, and latencies by batch.
#[derive(Debug, Default)]
pub(super) struct Menu {
    classes: Vec<WorkerClass>,
    /// By worker: position in `classes`.
    class_of: Vec<usize>,
    /// By worker: batches it is given at most, the running one included.
    room: Vec<u32>,
    /// By app: the largest batch that any of its variants takes.
    largest_batch: Vec<u32>,
    /// The largest batch that parks its requests; 0 if no variant has several stages.
    largest_parking: u32,
    /// By kind and exit (of all variants, one after the other), then by batch from 1.
    latencies: Vec<Vec<Option<Micros>>>,
    /// By kind and variant: the latency of its largest batch to its last exit.
    longest: Vec<Vec<Micros>>,
    /// Position of each variant's first exit among all exits, and at the end the number of exits.
    first_exit: Vec<usize>,
}

/// Workers of one kind with the same memory and capabilities: they can run the same exits, equally
/// fast.
#[derive(Debug)]
struct WorkerClass {
    kind: KindId,
    memory_bytes: u64,
    /// Whether they answer at exits before the last one.
    early_exits: bool,
    workers: Vec<WorkerId>,
    /// By app.
    items: Vec<Vec<MenuItem>>,
}

/// An exit, reached from the first stage on.
#[derive(Clone, Copy, Debug)]
pub(super) struct MenuItem {
    pub(super) variant: VariantId,
    pub(super) exit: ExitId,
    pub(super) to_stage: u32,
    pub(super) accuracy: f64,
    /// Of a batch of one.
    pub(super) latency: Micros,
    pub(super) efficient: EfficientBatch,
    /// Workers of its class.
    pub(super) workers: usize,
}

// === impl MenuItem ===

impl MenuItem {
    /// Requests per second in efficient batches.
    pub(super) fn rate(&self) -> f64 {
        f64::from(self.efficient.size) / self.efficient.latency.as_secs_f64().max(1e-6)
    }
}

// === impl Menu ===

impl Menu {
    pub(super) fn of(catalog: &Catalog) -> Self {
        let mut menu = Self::default();
        let capacity = Capacity::of(catalog);
        menu.first_exit.push(0);
        for variant in &catalog.variants {
            let before = menu.first_exit.last().copied().unwrap_or_default();
            menu.first_exit.push(before + variant.exits.len());
        }
        let staged = catalog.variants.iter().filter(|v| v.stages > 1);
        let parking = staged.map(|variant| variant.max_batch).max();
        menu.largest_parking = parking.unwrap_or_default();
        for kind in (0..catalog.kinds.len() as u32).map(KindId) {
            menu.add_latencies(kind, catalog);
            menu.add_longest(kind, catalog);
        }
        for (worker, spec) in (0..).map(WorkerId).zip(&catalog.workers) {
            let (kind, memory_bytes, early_exits) = (spec.kind, spec.memory_bytes, spec.can.exits);
            let same = |class: &WorkerClass| {
                (class.kind, class.memory_bytes, class.early_exits)
                    == (kind, memory_bytes, early_exits)
            };
            let class = menu.classes.iter().position(same).unwrap_or_else(|| {
                menu.classes.push(WorkerClass {
                    kind,
                    memory_bytes,
                    early_exits,
                    workers: Vec::new(),
                    items: Vec::new(),
                });
                menu.classes.len() - 1
            });
            menu.classes[class].workers.push(worker);
            menu.class_of.push(class);
            menu.room.push(1 + QUEUE_DEPTH.min(spec.queue_max));
        }
        for app in catalog.app_ids() {
            let sizes = catalog
                .variants_of(app)
                .map(|(_, variant)| variant.max_batch);
            menu.largest_batch.push(sizes.max().unwrap_or_default());
            for class in 0..menu.classes.len() {
                let items = menu.items_of(class, app, catalog, &capacity);
                menu.classes[class].items.push(items);
            }
        }
        menu
    }

    fn add_latencies(&mut self, kind: KindId, catalog: &Catalog) {
        for (v, variant) in (0..).map(VariantId).zip(&catalog.variants) {
            for (e, exit) in (0..).map(ExitId).zip(&variant.exits) {
                let latency = |batch| {
                    let to_stage = exit.after_stage;
                    catalog
                        .profile
                        .latency(kind, v, 0, to_stage, Some(e), batch)
                };
                let batches = 1..=variant.max_batch.min(BATCHES_KEPT);
                self.latencies.push(batches.map(latency).collect());
            }
        }
    }

    fn add_longest(&mut self, kind: KindId, catalog: &Catalog) {
        let variants = (0..).map(VariantId).zip(&catalog.variants);
        let longest = variants.map(|(v, variant)| {
            let (exit, batch) = (variant.last_exit(), variant.max_batch);
            let profile = &catalog.profile;
            let latency = profile.latency(kind, v, 0, variant.stages, Some(exit), batch);
            latency.unwrap_or_default()
        });
        self.longest.push(longest.collect());
    }

    fn items_of(
        &self,
        class: usize,
        app: AppId,
        catalog: &Catalog,
        capacity: &Capacity,
    ) -> Vec<MenuItem> {
        let WorkerClass {
            kind,
            memory_bytes,
            early_exits,
            ref workers,
            ..
        } = self.classes[class];
        let variants = catalog.variants_of(app);
        let fitting = variants.filter(|(_, variant)| variant.memory_bytes <= memory_bytes);
        let exits = fitting.flat_map(|(id, variant)| {
            let exits = (0..).map(ExitId).zip(&variant.exits);
            let exits = exits.filter(move |(e, _)| early_exits || *e == variant.last_exit());
            exits.map(move |(e, exit)| (id, e, exit))
        });
        exits
            .filter_map(|(variant, e, exit)| {
                Some(MenuItem {
                    variant,
                    exit: e,
                    to_stage: exit.after_stage,
                    accuracy: exit.accuracy,
                    latency: self.latency(kind, variant, e, 1)?,
                    efficient: capacity.efficient(kind, variant, e)?,
                    workers: workers.len(),
                })
            })
            .collect()
    }

    /// Number of classes of workers.
    pub(super) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The kind of a class's workers.
    pub(super) fn kind(&self, class: usize) -> KindId {
        self.classes[class].kind
    }

    /// The workers of a class, in the catalog's order.
    pub(super) fn workers(&self, class: usize) -> &[WorkerId] {
        &self.classes[class].workers
    }

    /// The class of a worker.
    pub(super) fn class_of(&self, worker: WorkerId) -> usize {
        self.class_of[worker.index()]
    }

    /// Batches that each worker is given at most, the running one included.
    pub(super) fn room(&self) -> &[u32] {
        &self.room
    }

    /// The exits of an app's variants that fit the class, in the catalog's order.
    pub(super) fn items(&self, class: usize, app: AppId) -> &[MenuItem] {
        let items = self.classes[class].items.get(app.index());
        items.map_or(&[], Vec::as_slice)
    }

    /// The largest batch that any variant of an app takes.
    pub(super) fn largest_batch(&self, app: AppId) -> u32 {
        let largest = self.largest_batch.get(app.index());
        largest.copied().unwrap_or_default()
    }

    /// The largest batch that parks its requests; 0 if no variant has several stages.
    pub(super) fn largest_parking(&self) -> u32 {
        self.largest_parking
    }

    /// Latency of the largest batch of a variant to its last exit; zero if it is not kept.
    pub(super) fn longest(&self, kind: KindId, variant: u32) -> Micros {
        let known = self.longest.get(kind.index());
        let known = known.and_then(|variants| variants.get(variant as usize));
        known.copied().unwrap_or_default()
    }

    /// Latency from the first stage to an exit, if it is kept.
    pub(super) fn latency(
        &self,
        kind: KindId,
        variant: VariantId,
        exit: ExitId,
        batch: u32,
    ) -> Option<Micros> {
        let exits = self.first_exit.last()?;
        let at = kind.index() * exits + self.first_exit.get(variant.index())? + exit.index();
        let batches = self.latencies.get(at)?;
        *batches.get(batch.checked_sub(1)? as usize)?
    }
}
