//! The catalog as a policy sees it: apps, variants with their exits, workers and latencies.

mod latency;

use std::ops::Deref;

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::host;
use crate::ids::{AppId, ExitId, KindId, VariantId, WorkerId};
use latency::LatencyTable;

pub use raw::{Capabilities, Penalty, Task};

/// The quality that stands for an unknown one: the same for all, so that policies compare such variants
/// by their latencies.
pub const UNKNOWN_QUALITY: f64 = 0.5;

/// The catalog with precomputed look-ups, each in constant time. Made once per change of the
/// catalog.
#[derive(Clone, Debug)]
pub struct Catalog {
    raw: Box<raw::Catalog>,
    /// Variants of each app, ascending.
    by_app: Vec<Vec<VariantId>>,
    latencies: LatencyTable,
}

/// One application. Dereferences to the record of the contract (`name`, `task`, `classes`, `slo`,
/// `penalty`, `prior`, `frequencies`, `sneakpeek`, `drops_late`).
#[derive(Clone, Copy, Debug)]
pub struct App<'a> {
    /// Its position in the catalog.
    pub id: AppId,
    raw: &'a raw::App,
    variants: &'a [VariantId],
}

/// One model variant. Dereferences to the record of the contract (`name`, `stages`, `exits`,
/// `memory_bytes`, `max_batch`).
#[derive(Clone, Copy, Debug)]
pub struct Variant<'a> {
    /// Its position in the catalog.
    pub id: VariantId,
    raw: &'a raw::ModelVariant,
}

/// One worker as configured. Dereferences to the record of the contract (`name`,
/// `memory_bytes`, `queue_max`, `parked_max`, `can`, `transfer`). Its state is in the window.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSpec<'a> {
    /// Its position in the catalog.
    pub id: WorkerId,
    raw: &'a raw::Worker,
}

// === impl Catalog ===

impl Catalog {
    /// Precomputes the look-ups.
    ///
    /// # Errors
    /// A variant or a worker names an app or a kind that is not there, or a variant has no
    /// exit; the text names the entry.
    pub fn new(raw: raw::Catalog) -> Result<Self, String> {
        let mut by_app = vec![Vec::new(); raw.apps.len()];
        for (id, variant) in (0u32..).map(VariantId).zip(&raw.variants) {
            let of = by_app.get_mut(variant.app as usize).ok_or_else(|| {
                format!(
                    "catalog: variants[{}].app: there is no app {}",
                    id.0, variant.app
                )
            })?;
            of.push(id);
            if variant.exits.is_empty() {
                return Err(format!("catalog: variants[{}].exits: there are none", id.0));
            }
        }
        if let Some(at) = raw
            .workers
            .iter()
            .position(|w| w.kind as usize >= raw.kinds.len())
        {
            return Err(format!(
                "catalog: workers[{at}].kind: there is no such kind"
            ));
        }
        Ok(Self {
            latencies: LatencyTable::new(&raw),
            by_app,
            raw: Box::new(raw),
        })
    }

    /// The records of the contract.
    pub fn raw(&self) -> &raw::Catalog {
        &self.raw
    }

    /// All apps.
    pub fn apps(&self) -> impl ExactSizeIterator<Item = App<'_>> {
        (0..self.raw.apps.len()).map(|i| self.app(AppId(i as u32)))
    }

    /// One app.
    ///
    /// # Panics
    /// The id is not of this catalog; ids that a catalog or a window hands out are.
    pub fn app(&self, id: AppId) -> App<'_> {
        App {
            id,
            raw: &self.raw.apps[id.index()],
            variants: &self.by_app[id.index()],
        }
    }

    /// The app that clients call by this name.
    pub fn app_named(&self, name: &str) -> Option<App<'_>> {
        self.apps().find(|app| app.name == name)
    }

    /// All variants of all apps.
    pub fn variants(&self) -> impl ExactSizeIterator<Item = Variant<'_>> {
        (0..self.raw.variants.len()).map(|i| self.variant(VariantId(i as u32)))
    }

    /// The variants of one app.
    pub fn variants_of(&self, app: AppId) -> impl ExactSizeIterator<Item = Variant<'_>> {
        self.by_app[app.index()].iter().map(|&id| self.variant(id))
    }

    /// One variant.
    ///
    /// # Panics
    /// The id is not of this catalog.
    pub fn variant(&self, id: VariantId) -> Variant<'_> {
        Variant {
            id,
            raw: &self.raw.variants[id.index()],
        }
    }

    /// All workers.
    pub fn workers(&self) -> impl ExactSizeIterator<Item = WorkerSpec<'_>> {
        (0..self.raw.workers.len()).map(|i| self.worker(WorkerId(i as u32)))
    }

    /// One worker.
    ///
    /// # Panics
    /// The id is not of this catalog.
    pub fn worker(&self, id: WorkerId) -> WorkerSpec<'_> {
        WorkerSpec {
            id,
            raw: &self.raw.workers[id.index()],
        }
    }

    /// Writes one line to the log for each app whose variants are not compared by measured accuracy: it
    /// does not classify, or the quality of a variant is unknown. For a policy's `configure`.
    pub fn log_quality(&self) {
        for app in self.apps() {
            if !app.classifies() {
                let task = match app.task {
                    Task::Classify => "classify",
                    Task::Embed => "embed",
                    Task::Regress => "regress",
                    Task::Score => "score",
                    Task::Tensors => "tensors",
                };
                let line = format!(
                    "app {}: no classes (task {task}): its variants compare by profiled quality, without \
                     recall and evidence",
                    app.name
                );
                host::log(host::Level::Info, &line);
            }
            let is_unknown =
                |variant: &Variant<'_>| variant.exits.iter().any(|e| e.quality.is_none());
            let unknown = self.variants_of(app.id).filter(is_unknown);
            let names: Vec<_> = unknown.map(|variant| variant.raw.name.as_str()).collect();
            if !names.is_empty() {
                let line = format!(
                    "app {}: the quality of {} is unknown and counts as {UNKNOWN_QUALITY}; the card of a \
                     variant states it",
                    app.name,
                    names.join(", ")
                );
                host::log(host::Level::Warn, &line);
            }
        }
    }

    /// Multiplies the latencies by the slowdown of each kind of workers, as a window shows it; none:
    /// as profiled. Load times stay as profiled.
    pub(crate) fn follow(&mut self, slowdown: Option<&[f64]>) {
        self.latencies.follow(slowdown.unwrap_or_default());
    }

    /// Number of worker kinds.
    pub fn kinds(&self) -> usize {
        self.raw.kinds.len()
    }

    /// Latencies in microseconds of all stages up to `exit`, then its head, for batches of 1, 2, and
    /// so on. The length is the largest batch that may be dispatched and was measured. Empty if the
    /// worker's kind has no latency for it, or if `exit` is not the last one and the worker lacks
    /// [`Capabilities::EXITS`]: the host refuses such a batch.
    pub fn latencies_us(&self, worker: WorkerId, variant: VariantId, exit: ExitId) -> &[u64] {
        match self.variant(variant).exits.get(exit.index()) {
            Some(found) => self.run_latencies_us(worker, variant, 0, found.after_stage, Some(exit)),
            None => &[],
        }
    }

    /// As [`latencies_us`](Self::latencies_us) for stages `[from_stage, to_stage)`, with the head of
    /// `exit` if one is given. A range that was not measured as a whole is the sum of its stages.
    pub fn run_latencies_us(
        &self,
        worker: WorkerId,
        variant: VariantId,
        from_stage: u32,
        to_stage: u32,
        exit: Option<ExitId>,
    ) -> &[u64] {
        let (spec, found) = (self.worker(worker), self.variant(variant));
        let answers = |e: ExitId| {
            let follows = |e: &raw::ModelExit| e.after_stage == to_stage;
            let is_open = e == found.last_exit() || spec.can.contains(Capabilities::EXITS);
            is_open && found.exits.get(e.index()).is_some_and(follows)
        };
        if exit.is_some_and(|e| !answers(e)) {
            return &[];
        }
        self.latencies
            .of_range(spec.kind(), variant, from_stage, to_stage, exit.is_some())
    }

    /// Latency in microseconds of a batch from the first stage to `exit`, interpolated as the host
    /// does; none if it was not measured or the batch may not be dispatched.
    pub fn latency_us(
        &self,
        worker: WorkerId,
        variant: VariantId,
        exit: ExitId,
        batch: u32,
    ) -> Option<u64> {
        let latencies = self.latencies_us(worker, variant, exit);
        latencies.get((batch as usize).checked_sub(1)?).copied()
    }

    /// Microseconds to make a variant resident on a worker; 0 if it was not measured.
    pub fn load_us(&self, worker: WorkerId, variant: VariantId) -> u64 {
        self.latencies.load(self.worker(worker).kind(), variant)
    }

    /// Whether a worker has the memory for a variant and its kind has latencies for it. The host
    /// refuses a plan that runs a variant on a worker without the memory.
    pub fn can_run(&self, worker: WorkerId, variant: VariantId) -> bool {
        let exit = self.variant(variant).last_exit();
        self.variant(variant).memory_bytes <= self.worker(worker).memory_bytes
            && !self.latencies_us(worker, variant, exit).is_empty()
    }
}

// === impl App ===

impl<'a> App<'a> {
    /// Its variants, ascending.
    pub fn variants(self) -> &'a [VariantId] {
        self.variants
    }

    /// Whether its answers are classes. If not, it has no classes, recall or evidence, and variants
    /// compare by their quality alone.
    pub fn classifies(self) -> bool {
        self.raw.task == Task::Classify
    }
}

impl<'a> Deref for App<'a> {
    type Target = raw::App;
    fn deref(&self) -> &raw::App {
        self.raw
    }
}

// === impl Variant ===

impl<'a> Variant<'a> {
    /// The app it belongs to.
    pub fn app(self) -> AppId {
        AppId(self.raw.app)
    }

    /// The exit after its last stage.
    pub fn last_exit(self) -> ExitId {
        ExitId(self.raw.exits.len() as u32 - 1)
    }

    /// Its exits, shallow to deep.
    pub fn exit_ids(self) -> impl ExactSizeIterator<Item = ExitId> {
        (0..self.raw.exits.len() as u32).map(ExitId)
    }

    /// One of its exits.
    ///
    /// # Panics
    /// The variant has no such exit.
    pub fn exit(self, id: ExitId) -> &'a raw::ModelExit {
        &self.raw.exits[id.index()]
    }

    /// Profiled quality of its last exit, 0 to 1; [`UNKNOWN_QUALITY`] if it is unknown.
    pub fn quality(self) -> f64 {
        self.quality_of(self.last_exit())
    }

    /// Profiled quality of an exit, 0 to 1; [`UNKNOWN_QUALITY`] if it is unknown.
    ///
    /// # Panics
    /// The variant has no such exit.
    pub fn quality_of(self, exit: ExitId) -> f64 {
        self.exit(exit).quality.unwrap_or(UNKNOWN_QUALITY)
    }
}

impl<'a> Deref for Variant<'a> {
    type Target = raw::ModelVariant;
    fn deref(&self) -> &raw::ModelVariant {
        self.raw
    }
}

// === impl WorkerSpec ===

impl WorkerSpec<'_> {
    /// Which profile applies to it.
    pub fn kind(self) -> KindId {
        KindId(self.raw.kind)
    }

    /// Time that the inputs and answers of a batch take to it and back, in microseconds; 0 for a worker
    /// in the host's process.
    pub fn transfer_us(self) -> u64 {
        self.raw.transfer
    }
}

impl<'a> Deref for WorkerSpec<'a> {
    type Target = raw::Worker;
    fn deref(&self) -> &raw::Worker {
        self.raw
    }
}

#[cfg(test)]
mod tests {
    use super::{Capabilities, Task, UNKNOWN_QUALITY};
    use crate::ids::{AppId, ExitId, VariantId, WorkerId};
    use crate::testing::CatalogBuilder;

    #[test]
    fn looks_up_and_interpolates() {
        let catalog = CatalogBuilder::new()
            .app("heart", &["n", "a"])
            .variant("cnn", &[0.9, 0.8])
            .max_batch(6)
            .latency_at(1, 101)
            .latency_at(4, 400)
            .load_us(70)
            .worker("cpu")
            .build();
        let at = |batch| catalog.latency_us(WorkerId(0), VariantId(0), ExitId(0), batch);
        assert_eq!(at(0), None);
        assert_eq!(at(1), Some(101));
        // 101 + (400 - 101) * 1 / 3 = 200.67, rounded up.
        assert_eq!(at(2), Some(201));
        assert_eq!(at(4), Some(400));
        assert_eq!(at(5), None, "not measured, though it may be dispatched");
        assert_eq!(catalog.load_us(WorkerId(0), VariantId(0)), 70);
        assert_eq!(catalog.app(AppId(0)).variants(), &[VariantId(0)]);
        assert!(catalog.can_run(WorkerId(0), VariantId(0)));
    }

    #[test]
    fn sums_stages_if_the_range_was_not_measured() {
        let catalog = CatalogBuilder::new()
            .app("image", &["a", "b"])
            .variant("net", &[0.9, 0.9])
            .stages(3)
            .stage_latency(0, 1, false, 1, 10)
            .stage_latency(1, 2, false, 1, 20)
            .stage_latency(2, 3, true, 1, 30)
            .worker("cpu")
            .build();
        let run = |from, to, exit: Option<u32>| {
            catalog.run_latencies_us(WorkerId(0), VariantId(0), from, to, exit.map(ExitId))
        };
        assert_eq!(run(0, 3, Some(0)), &[60]);
        assert_eq!(run(1, 3, Some(0)), &[50]);
        assert_eq!(run(0, 2, None), &[30]);
        assert_eq!(
            run(0, 3, None),
            &[] as &[u64],
            "the last stage has only its head"
        );
        assert_eq!(run(0, 2, Some(0)), &[] as &[u64], "exit 0 follows stage 3");
    }

    #[test]
    fn workers_without_exits_have_latencies_to_last_exits_only() {
        let catalog = CatalogBuilder::new()
            .app("image", &["a", "b"])
            .variant("net", &[0.9, 0.9])
            .stages(2)
            .early_exit("early", 1, &[0.8, 0.8])
            .max_batch(1)
            .latency(20, 0)
            .worker("own")
            .worker("remote")
            .can(Capabilities::all() - Capabilities::EXITS)
            .build();
        let net = VariantId(0);
        let early_us = |worker| catalog.latencies_us(WorkerId(worker), net, ExitId(0));
        let last_us = |worker| catalog.latencies_us(WorkerId(worker), net, ExitId(1));
        assert_eq!((early_us(0), last_us(0)), (&[10][..], &[20][..]));
        assert_eq!((early_us(1), last_us(1)), (&[][..], &[20][..]));
        assert!(catalog.can_run(WorkerId(1), net));
    }

    #[test]
    fn apps_without_classes_compare_by_quality_and_say_so() {
        let catalog = CatalogBuilder::new()
            .app("heart", &["n", "a"])
            .variant("cnn", &[0.9, 0.8])
            .task_app("embed", Task::Embed)
            .quality("stated", Some(0.7))
            .quality("new", None)
            .latency(100, 10)
            .worker("cpu")
            .build();
        let qualities: Vec<f64> = catalog.variants().map(super::Variant::quality).collect();
        assert!((qualities[0] - 0.85).abs() < 1e-12, "{qualities:?}");
        assert_eq!(qualities[1..], [0.7, UNKNOWN_QUALITY]);
        assert!(!catalog.app(AppId(1)).classifies());
        let logged = || {
            catalog.log_quality();
            let lines = crate::host::native::take_log().into_iter();
            lines.map(|(_, line)| line).collect::<Vec<_>>()
        };
        assert_eq!(
            logged(),
            [
                "app embed: no classes (task embed): its variants compare by profiled quality, without \
                 recall and evidence",
                "app embed: the quality of new is unknown and counts as 0.5; the card of a variant \
                 states it",
            ]
        );
    }
}
