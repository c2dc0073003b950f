//! How an app's requests can be answered, and which batch would be served (eq. 5 and 6).

use switchyard_sdk::{AppId, Catalog, ExitId, KindId, VariantId, WorkerId};

use crate::queue::Queue;
use crate::settings::Settings;

/// Which exit of its ladder a batch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitRule {
    /// The deepest with which no task of the batch misses its SLO; the shallowest where none
    /// does (eq. 6).
    DeepestInTime,
    /// The deepest.
    Final,
    /// The shallowest.
    Early,
}

/// One way of answering: an exit of a variant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rung {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    accuracy: f64,
    /// Of whole runs by batch, from 1; never empty.
    latencies_us: Vec<u64>,
    /// To make the variant resident.
    load_us: u64,
}

/// An app's ways of answering on one worker: accuracy and latency grow from each to the next.
/// For one variant this is its exits, shallow to deep.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ladder(Vec<Rung>);

/// The ladders of all apps on all workers.
#[derive(Clone, Debug)]
pub(crate) struct Ladders {
    /// Per worker, its place in `sets`.
    set_of: Vec<usize>,
    /// Ladders by app. Workers of the same kind and memory share theirs.
    sets: Vec<Vec<Ladder>>,
}

/// A batch that could be served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) variant: VariantId,
    pub(crate) exit: ExitId,
    pub(crate) size: usize,
    /// Until it is done, a load included, in microseconds.
    pub(crate) latency_us: f64,
}

// === impl Ladders ===

impl Ladders {
    /// # Errors
    /// The settings name an exit that no variant has.
    pub(crate) fn of_catalog(catalog: &Catalog, settings: &Settings) -> Result<Self, String> {
        let has = |name: &String| {
            let mut exits = catalog.raw().variants.iter().flat_map(|v| &v.exits);
            exits.any(|exit| exit.name == *name)
        };
        let named = settings.exits.iter().flatten();
        if let Some(name) = named.clone().find(|name| !has(name)) {
            return Err(format!("settings: exits: no variant has an exit {name}"));
        }
        let mut kinds: Vec<(KindId, u64)> = Vec::new();
        let (mut set_of, mut sets) = (Vec::new(), Vec::new());
        for worker in catalog.workers() {
            let kind = (worker.kind(), worker.memory_bytes);
            let known = kinds.iter().position(|known| *known == kind);
            set_of.push(known.unwrap_or_else(|| {
                kinds.push(kind);
                let ladder = |app| Ladder::new(catalog, settings, worker.id, app);
                sets.push(catalog.apps().map(|app| ladder(app.id)).collect());
                sets.len() - 1
            }));
        }
        Ok(Self { set_of, sets })
    }

    pub(crate) fn of(&self, worker: WorkerId, app: AppId) -> &Ladder {
        &self.sets[self.set_of[worker.index()]][app.index()]
    }
}

// === impl Ladder ===

impl Ladder {
    fn new(catalog: &Catalog, settings: &Settings, worker: WorkerId, app: AppId) -> Self {
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
                        accuracy: variant.exit(exit).accuracy,
                        latencies_us: latencies_us.to_vec(),
                        load_us: catalog.load_us(worker, variant.id),
                    });
                }
            }
        }
        Self::of_rungs(rungs)
    }

    /// Leaves out what is no faster than something at least as accurate.
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

    /// What would be served of a queue from `start_us` after now on: as many as are waiting, up
    /// to `batch_max` and what the exit's profile covers (eq. 5), with the exit that the rule
    /// gives. None where nothing waits or the worker cannot run it.
    pub(crate) fn batch(
        &self,
        rule: ExitRule,
        queue: &Queue,
        start_us: f64,
        batch_max: usize,
        holds: impl Fn(VariantId) -> bool,
    ) -> Option<Batch> {
        let longest_us = queue.longest_wait_us()?;
        let most = queue.waiting().len().min(batch_max);
        let with = |rung: &Rung| rung.batch(most, holds(rung.variant));
        let rungs = self.reaching(queue.wished_accuracy(most));
        match rule {
            ExitRule::Final => rungs.last().map(with),
            ExitRule::Early => rungs.first().map(with),
            ExitRule::DeepestInTime => {
                let is_in_time =
                    |batch: &Batch| longest_us + start_us + batch.latency_us <= queue.tau_us;
                let deepest = rungs.iter().rev().map(with).find(is_in_time);
                deepest.or_else(|| rungs.first().map(with))
            }
        }
    }

    /// The rungs with the accuracy that a client asks for; all of them where none has it.
    fn reaching(&self, min_accuracy: f64) -> &[Rung] {
        // The client's number was rounded to an f32 on its way.
        let below = |rung: &Rung| rung.accuracy < min_accuracy - 1e-6;
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
    fn batch(&self, most: usize, is_resident: bool) -> Batch {
        let size = most.clamp(1, self.latencies_us.len());
        let load_us = if is_resident { 0 } else { self.load_us };
        Batch {
            variant: self.variant,
            exit: self.exit,
            size,
            latency_us: self.latencies_us[size - 1].saturating_add(load_us) as f64,
        }
    }
}
