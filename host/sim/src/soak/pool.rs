//! The pool of a soak case: two apps, up to three kinds of treatment of late requests, and workers that
//! differ in speed, memory and capabilities.

use std::sync::Arc;

use switchyard_core::SchedulerConfig;
use switchyard_core::catalog::{
    App, Capabilities, Catalog, Exit, Late, Penalty, SneakPeekModel, Task, Variant, WorkerSpec,
};
use switchyard_core::guard::FaultLimit;
use switchyard_core::ids::{AppId, ExitId, KindId, VariantId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::time::Micros;

/// Most workers and variants of a pool: changes of the catalog add no more.
const GROWN_MAX: u32 = 6;

/// Largest batch of every variant.
pub(super) const BATCH_MAX: u32 = 8;

/// The pool of a case, in numbers that a test can state.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakPool {
    /// Seed of the scheduler's draws.
    pub seed: u64,
    /// Workers, at least 1.
    pub workers: u32,
    /// Variants, at least 3; those beyond are copies of the first.
    pub variants: u32,
    /// Times of batches in percent of the usual ones.
    pub percent: u64,
    /// Treatment of late requests by app.
    pub late: [Late; 2],
    /// The second worker has no memory for the large variant.
    pub second_is_small: bool,
    /// The second worker runs only whole variants, and parks nothing.
    pub second_is_whole: bool,
    /// Batches that wait at a worker.
    pub queue_max: u32,
    /// Requests parked at a worker.
    pub parked_max: u32,
    /// Requests that may be pending.
    pub pending_max: usize,
    /// Faults within 20 windows that take a policy off.
    pub faults: usize,
    /// Patience past a deadline.
    pub patience_ms: u64,
    /// Predictions follow the observed latencies.
    pub follows_latencies: bool,
    /// Batches that a worker of the first kind has at a time; the others have one.
    pub outstanding: u32,
    /// How the case ends.
    pub ending: Ending,
}

/// The end of a case, after its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Workers come back, and the fallback serves every request.
    ByFallback,
    /// Workers come back, and the policy in charge stays: every request that is due ends.
    ByPolicy,
    /// No worker answers any more: every request that is due ends.
    WithoutWorkers,
}

/// A change of a pool's catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogChange {
    /// One worker more.
    AddWorker,
    /// One variant more.
    AddVariant,
    /// Batches are profiled at twice the time.
    Slower,
    /// Batches are profiled at half the time.
    Faster,
    /// The apps exchange their treatments of late requests.
    SwapLate,
    /// The same catalog again.
    Same,
    /// A catalog without the last worker, which the core must ignore.
    Shrunk,
}

// === impl SoakPool ===

impl SoakPool {
    /// Applies a change; the catalog that the operator sends.
    pub(super) fn change(&mut self, change: CatalogChange) -> Arc<Catalog> {
        match change {
            CatalogChange::AddWorker => self.workers = (self.workers + 1).min(GROWN_MAX),
            CatalogChange::AddVariant => self.variants = (self.variants + 1).min(GROWN_MAX),
            CatalogChange::Slower => self.percent = (self.percent * 2).min(800),
            CatalogChange::Faster => self.percent = (self.percent / 2).max(25),
            CatalogChange::SwapLate => self.late.reverse(),
            CatalogChange::Same => {}
            CatalogChange::Shrunk => {
                let mut catalog = self.catalog();
                catalog.workers.pop();
                return Arc::new(catalog);
            }
        }
        Arc::new(self.catalog())
    }

    /// The scheduler's configuration.
    pub(super) fn config(&self) -> SchedulerConfig {
        SchedulerConfig {
            seed: self.seed,
            pending_max: self.pending_max,
            fault_limit: FaultLimit {
                faults: self.faults,
                windows: 20,
            },
            patience: self.patience(),
            history: 4,
            follows_latencies: self.follows_latencies,
            ..SchedulerConfig::default()
        }
    }

    pub(super) fn patience(&self) -> Micros {
        Micros::from_millis(self.patience_ms)
    }

    /// `heart` has a SneakPeek model, a small variant of one stage (1 ms) and a large one of three stages
    /// with two exits (2 ms a stage). `fall` has one variant (3 ms). A batch of 8 takes twice the time of
    /// one request; workers of the second kind take half the time.
    pub(super) fn catalog(&self) -> Catalog {
        let copies = (3..self.variants).map(|_| variant("copy", 0, &[(1, 0.75)], 1_000));
        let first = [
            variant("small", 0, &[(1, 0.7)], 1_000),
            variant("large", 0, &[(1, 0.8), (3, 0.95)], 2_000),
            variant("only", 1, &[(1, 0.9)], 1_000),
        ];
        let variants: Vec<Variant> = first.into_iter().chain(copies).collect();
        let loads = (0..self.variants).flat_map(|v| {
            [0, 1].map(|kind| LoadRow {
                kind: KindId(kind),
                variant: VariantId(v),
                latency: Micros(500),
            })
        });
        Catalog {
            generation: 1,
            apps: vec![
                app("heart", true, self.late[0]),
                app("fall", false, self.late[1]),
            ],
            kinds: vec!["cpu".to_owned(), "gpu".to_owned()],
            workers: (0..self.workers).map(|w| self.worker(w)).collect(),
            profile: Profile::new(0.95, self.rows(&variants), loads),
            variants,
        }
    }

    fn rows(&self, variants: &[Variant]) -> Vec<ProfileRow> {
        let mut rows = Vec::new();
        for (v, variant) in (0..).zip(variants) {
            let stage_us = [1_000, 2_000, 3_000]
                .get(v as usize)
                .copied()
                .unwrap_or(1_500);
            for from_stage in 0..variant.stages {
                for exit in [None, Some(ExitId(0)), Some(ExitId(1))] {
                    for (batch, factor) in [(1, 1), (BATCH_MAX, 2)] {
                        for (kind, share) in [(0, 1), (1, 2)] {
                            rows.push(ProfileRow {
                                kind: KindId(kind),
                                variant: VariantId(v),
                                from_stage,
                                to_stage: from_stage + 1,
                                exit,
                                batch,
                                latency: Micros(stage_us * factor * self.percent / 100 / share),
                                energy_uj: None,
                            });
                        }
                    }
                }
            }
        }
        rows
    }

    fn worker(&self, w: u32) -> WorkerSpec {
        let is_small = self.second_is_small && w == 1;
        let is_whole = self.second_is_whole && w == 1;
        WorkerSpec {
            name: format!("w{w}"),
            kind: KindId(w % 2),
            memory_bytes: if is_small { 1_500 } else { 10_000 },
            queue_max: self.queue_max,
            parked_max: if is_whole { 0 } else { self.parked_max },
            can: Capabilities {
                stage_ranges: !is_whole,
                exits: !is_whole,
                parking: !is_whole,
            },
            transfer: Micros(u64::from(w % 3) * 100),
            outstanding: if w.is_multiple_of(2) {
                self.outstanding
            } else {
                1
            },
        }
    }
}

fn app(name: &str, has_evidence: bool, late: Late) -> App {
    App {
        name: name.to_owned(),
        task: Task::Classify,
        classes: vec!["a".to_owned(), "b".to_owned()],
        slo: Micros::from_millis(20),
        penalty: Penalty::Sigmoid,
        prior: vec![0.5, 0.5],
        frequencies: vec![0.5, 0.5],
        sneakpeek: has_evidence.then(|| SneakPeekModel {
            neighbours: 5,
            accuracy: 0.6,
            recall: vec![0.6, 0.6],
            confusion: None,
        }),
        late,
    }
}

fn variant(name: &str, app: u32, exits: &[(u32, f64)], memory_bytes: u64) -> Variant {
    let made = exits.iter().map(|&(after_stage, accuracy)| Exit {
        name: format!("stage{after_stage}"),
        after_stage,
        accuracy,
        recall: vec![accuracy; 2],
        confusion: None,
    });
    Variant {
        name: name.to_owned(),
        app: AppId(app),
        stages: exits.last().map_or(1, |last| last.0),
        exits: made.collect(),
        quality_unknown: false,
        memory_bytes,
        max_batch: BATCH_MAX,
    }
}
