//! The exits of each app on each worker, and the batch that a queue would get (eq. 5 and 6).

use switchyard_sdk::catalog::Capabilities;
use switchyard_sdk::{AppId, Catalog, ExitId, KindId, VariantId, WorkerId};

use crate::queue::AppQueue;
use crate::settings::{ExitRule, StabilitySettings};

/// An exit of a variant on one worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rung {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    accuracy: f64,
    /// Latency by batch, from 1; never empty.
    latencies_us: Vec<u64>,
    /// Load time of the variant.
    load_us: u64,
}

/// The exits of an app on one worker, by increasing accuracy and latency. With one variant: its
/// exits, shallow to deep.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExitLadder(Vec<Rung>);

/// The ladders of all apps on all workers.
#[derive(Clone, Debug)]
pub(crate) struct ExitLadders {
    /// Per worker, an index into `sets`.
    set_of: Vec<usize>,
    /// Ladders by app. Workers of one kind with the same memory and capabilities share a
    /// set.
    sets: Vec<Vec<ExitLadder>>,
}

/// A batch that a worker can serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PossibleBatch {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    pub(crate) size: usize,
    /// Latency with the load time, in microseconds.
    pub(crate) latency_us: f64,
}

// === impl ExitLadders ===

impl ExitLadders {
    /// Builds the ladders.
    ///
    /// # Errors
    /// The settings name an exit that no variant has.
    pub(crate) fn of_catalog(
        catalog: &Catalog,
        settings: &StabilitySettings,
    ) -> Result<Self, String> {
        let has = |name: &String| {
            let mut exits = catalog.raw().variants.iter().flat_map(|v| &v.exits);
            exits.any(|exit| exit.name == *name)
        };
        let named = settings.exits.iter().flatten();
        if let Some(name) = named.clone().find(|name| !has(name)) {
            return Err(format!("settings: exits: no variant has an exit {name}"));
        }
        let mut kinds: Vec<(KindId, u64, Capabilities)> = Vec::new();
        let (mut set_of, mut sets) = (Vec::new(), Vec::new());
        for worker in catalog.workers() {
            let kind = (worker.kind(), worker.memory_bytes, worker.can);
            let known = kinds.iter().position(|known| *known == kind);
            set_of.push(known.unwrap_or_else(|| {
                kinds.push(kind);
                let ladder = |app| ExitLadder::new(catalog, settings, worker.id, app);
                sets.push(catalog.apps().map(|app| ladder(app.id)).collect());
                sets.len() - 1
            }));
        }
        Ok(Self { set_of, sets })
    }

    pub(crate) fn of(&self, worker: WorkerId, app: AppId) -> &ExitLadder {
        &self.sets[self.set_of[worker.index()]][app.index()]
    }
}

// === impl ExitLadder ===

impl ExitLadder {
    fn new(catalog: &Catalog, settings: &StabilitySettings, worker: WorkerId, app: AppId) -> Self {
        let mut rungs = Vec::new();
        for variant in catalog.variants_of(app) {
            if !catalog.can_run(worker, variant.id) {
                continue;
            }
            for exit in variant.exit_ids() {
                let latencies_us = catalog.latencies_us(worker, variant.id, exit);
                let is_used =
                    exit == variant.last_exit() || settings.uses_exit(&variant.exit(exit).name);
                if is_used && !latencies_us.is_empty() {
                    rungs.push(Rung {
                        variant: variant.id,
                        exit,
                        accuracy: variant.quality_of(exit),
                        latencies_us: latencies_us.to_vec(),
                        load_us: catalog.load_us(worker, variant.id),
                    });
                }
            }
        }
        Self::of_rungs(rungs)
    }

    /// Drops exits that are no faster than one at least as accurate.
    fn of_rungs(mut rungs: Vec<Rung>) -> Self {
        rungs.sort_by(|a, b| {
            let deep_first = b.accuracy.total_cmp(&a.accuracy);
            deep_first.then(a.latencies_us[0].cmp(&b.latencies_us[0]))
        });
        let mut fastest_us = u64::MAX;
        rungs.retain(|rung| {
            let is_faster = rung.latencies_us[0] < fastest_us;
            fastest_us = fastest_us.min(rung.latencies_us[0]);
            is_faster
        });
        rungs.reverse();
        Self(rungs)
    }

    /// The batch of a queue that starts `start_us` from now: all waiting tasks up to `batch_max`
    /// and the exit's profile (eq. 5), with the exit of `rule`. None if the queue is empty or the
    /// worker has no exit of the app.
    pub(crate) fn batch(
        &self,
        rule: ExitRule,
        queue: &AppQueue,
        start_us: f64,
        batch_max: usize,
        holds: impl Fn(VariantId) -> bool,
    ) -> Option<PossibleBatch> {
        let longest_us = queue.longest_wait_us()?;
        let most = queue.waiting().len().min(batch_max);
        let with = |rung: &Rung| rung.batch(most, holds(rung.variant));
        let rungs = self.reaching(queue.wished_accuracy(most));
        match rule {
            ExitRule::Final => rungs.last().map(with),
            ExitRule::Early => rungs.first().map(with),
            ExitRule::DeepestInTime => {
                let is_in_time = |batch: &PossibleBatch| {
                    longest_us + start_us + batch.latency_us <= queue.tau_us
                };
                let deepest = rungs.iter().rev().map(with).find(is_in_time);
                deepest.or_else(|| rungs.first().map(with))
            }
        }
    }

    /// The rungs that reach `min_quality`; all if none does.
    fn reaching(&self, min_quality: f64) -> &[Rung] {
        // The client's value was rounded to f32.
        let below = |rung: &Rung| rung.accuracy < min_quality - 1e-6;
        match self.0.partition_point(below) {
            at if at == self.0.len() => &self.0,
            at => &self.0[at..],
        }
    }

    #[cfg(test)]
    pub(crate) fn rungs(&self) -> Vec<(u32, u32)> {
        let name = |rung: &Rung| (rung.variant.0, rung.exit.0);
        self.0.iter().map(name).collect()
    }
}

// === impl Rung ===

impl Rung {
    fn batch(&self, most: usize, is_resident: bool) -> PossibleBatch {
        let size = most.clamp(1, self.latencies_us.len());
        let load_us = if is_resident { 0 } else { self.load_us };
        PossibleBatch {
            variant: self.variant,
            exit: self.exit,
            size,
            latency_us: self.latencies_us[size - 1].saturating_add(load_us) as f64,
        }
    }
}
