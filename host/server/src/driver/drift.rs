//! Whether batches still take what the profile says.
//!
//! Policies plan with the profile; when the machine has become slower, or faster, they plan
//! wrongly and nothing else would say so. Compared is like with like: the median of the last
//! batches of one worker, variant, stage range, exit and size, with the profile's median of the
//! same. Owned by the driver thread: no locks, and no allocation but for a kind of batch that is
//! seen for the first time.

use std::sync::Arc;

use metrics::{Counter, Gauge};
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, VariantId, WorkerId};
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;

use super::waiters::Running;
use crate::telemetry::{Registry, names};

/// Batches of one kind that a median is taken of; with fewer nothing is said.
const WINDOW: usize = 16;

/// Differences below this count as none: they decide no deadline, and the profile's own samples
/// are no more exact.
const NOTICEABLE_US: u64 = 50;

/// Back in the band means well inside it, so that a ratio at its edge is told of once.
const BACK: f64 = 0.9;

/// A kind of batch that has not been seen for so many batches of its worker and variant is
/// forgotten: nobody could bring it back into the band.
const FORGOTTEN: u64 = 512;

/// Compares, counts and tells.
pub(super) struct Drift {
    catalog: Arc<Catalog>,
    medians: Profile,
    band: f64,
    registry: Registry,
    /// By worker, then by variant.
    tracks: Vec<Vec<Track>>,
}

/// One variant on one worker.
#[derive(Default)]
struct Track {
    cells: Vec<Cell>,
    batches: u64,
    is_out: bool,
    meters: Option<(Gauge, Counter)>,
}

/// One kind of batch.
struct Cell {
    kind: Kind,
    profiled: Micros,
    /// The last latencies in microseconds; the next one goes to `next % WINDOW`.
    observed_us: [u64; WINDOW],
    next: u64,
    /// Their median beside the profile's; none before there are enough.
    compared: Option<Furthest>,
    /// The track's count at the last batch.
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    from_stage: u32,
    to_stage: u32,
    exit: Option<ExitId>,
    batch: u32,
}

/// The kind of batch that is furthest from the profile.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Furthest {
    kind: Kind,
    profiled: Micros,
    observed: Micros,
    ratio: f64,
}

/// What has become of a track with its last batch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Left(Furthest),
    Back(Option<Furthest>),
}

// === impl Drift ===

impl Drift {
    pub(super) fn new(
        catalog: Arc<Catalog>,
        medians: Profile,
        band: f64,
        registry: Registry,
    ) -> Self {
        let of_worker = || catalog.variants.iter().map(|_| Track::default()).collect();
        let tracks = catalog.workers.iter().map(|_| of_worker()).collect();
        Self {
            catalog,
            medians,
            band,
            registry,
            tracks,
        }
    }

    /// A worker has run a batch in so much time.
    pub(super) fn observe(&mut self, pool: &str, worker: WorkerId, ran: &Running, took: Micros) {
        let kind = Kind {
            from_stage: ran.from_stage,
            to_stage: ran.to_stage,
            exit: ran.exit,
            batch: ran.requests.len() as u32,
        };
        let Some(spec) = self.catalog.worker(worker) else {
            return;
        };
        let profiled = self.medians.latency(
            spec.kind,
            ran.variant,
            kind.from_stage,
            kind.to_stage,
            kind.exit,
            kind.batch,
        );
        let tracks = self.tracks.get_mut(worker.index());
        let track = tracks.and_then(|tracks| tracks.get_mut(ran.variant.index()));
        let (Some(profiled), Some(track)) = (profiled, track) else {
            return; // Nothing to compare with.
        };
        let change = track.observe(kind, profiled, took, self.band);
        if let Some(furthest) = track.furthest() {
            let meters = track
                .meters
                .get_or_insert_with(|| meters(&self.registry, &self.catalog, worker, ran.variant));
            meters.0.set(furthest.ratio);
            if matches!(change, Some(Change::Left(_))) {
                meters.1.increment(1);
            }
        }
        if let Some(change) = change {
            self.tell(pool, worker, ran.variant, change);
        }
    }

    fn tell(&self, pool: &str, worker: WorkerId, variant: VariantId, change: Change) {
        let (app, variant_name) = names_of(&self.catalog, variant);
        let worker = self.catalog.worker(worker).map_or("", |spec| &*spec.name);
        let furthest = match change {
            Change::Left(furthest) | Change::Back(Some(furthest)) => furthest,
            Change::Back(None) => {
                tracing::info!(pool, worker, app, variant = variant_name, "drift forgotten");
                return;
            }
        };
        let Furthest {
            kind,
            profiled,
            observed,
            ratio,
        } = furthest;
        let exits = self.catalog.variant(variant).map(|known| &known.exits);
        let exit = kind
            .exit
            .and_then(|exit| exits?.get(exit.index()))
            .map_or("none, parked", |exit| &*exit.name);
        let stages = format!("{} to {}", kind.from_stage, kind.to_stage);
        let (batch, variant) = (kind.batch, variant_name);
        let (profiled_us, observed_us) = (profiled.0, observed.0);
        if matches!(change, Change::Left(_)) {
            tracing::warn!(
                pool,
                worker,
                app,
                variant,
                stages,
                exit,
                batch,
                profiled_us,
                observed_us,
                ratio,
                "latency drifts from the profile"
            );
        } else {
            tracing::info!(
                pool,
                worker,
                app,
                variant,
                stages,
                exit,
                batch,
                profiled_us,
                observed_us,
                ratio,
                "latency is as profiled again"
            );
        }
    }
}

// === impl Track ===

impl Track {
    fn observe(&mut self, kind: Kind, profiled: Micros, took: Micros, band: f64) -> Option<Change> {
        self.batches += 1;
        let now = self.batches;
        self.cells.retain(|cell| now - cell.last < FORGOTTEN);
        let at = match self.cells.iter().position(|cell| cell.kind == kind) {
            Some(at) => at,
            None => {
                self.cells.push(Cell::new(kind, profiled));
                self.cells.len() - 1
            }
        };
        let cell = &mut self.cells[at];
        cell.last = now;
        cell.observe(took);
        let furthest = self.furthest();
        let away = furthest.map_or(1.0, Furthest::away);
        if self.is_out && away < 1.0 + (band - 1.0) * BACK {
            self.is_out = false;
            return Some(Change::Back(furthest));
        }
        if !self.is_out && away > band {
            self.is_out = true;
            return furthest.map(Change::Left);
        }
        None
    }

    /// Of the kinds with a full window.
    fn furthest(&self) -> Option<Furthest> {
        let compared = self.cells.iter().filter_map(|cell| cell.compared);
        compared.max_by(|a, b| a.away().total_cmp(&b.away()))
    }
}

// === impl Cell ===

impl Cell {
    fn new(kind: Kind, profiled: Micros) -> Self {
        Self {
            kind,
            profiled,
            observed_us: [0; WINDOW],
            next: 0,
            compared: None,
            last: 0,
        }
    }

    /// Compares anew; the other kinds of the track are as they were.
    fn observe(&mut self, took: Micros) {
        self.observed_us[(self.next % WINDOW as u64) as usize] = took.0;
        self.next += 1;
        self.compared = self.compare();
    }

    fn compare(&self) -> Option<Furthest> {
        if self.next < WINDOW as u64 {
            return None;
        }
        let mut window = self.observed_us;
        let (_, &mut median, _) = window.select_nth_unstable(WINDOW / 2);
        let ratio = if median.abs_diff(self.profiled.0) < NOTICEABLE_US {
            1.0
        } else {
            median.max(1) as f64 / self.profiled.0.max(1) as f64
        };
        Some(Furthest {
            kind: self.kind,
            profiled: self.profiled,
            observed: Micros(median),
            ratio,
        })
    }
}

// === impl Furthest ===

impl Furthest {
    /// From 1 on: faster counts as slower does.
    fn away(self) -> f64 {
        self.ratio.max(1.0 / self.ratio)
    }
}

fn names_of(catalog: &Catalog, variant: VariantId) -> (&str, &str) {
    let known = catalog.variant(variant);
    let app = known.and_then(|known| catalog.app(known.app));
    (
        app.map_or("", |app| &app.name),
        known.map_or("", |known| &known.name),
    )
}

fn meters(
    registry: &Registry,
    catalog: &Catalog,
    worker: WorkerId,
    variant: VariantId,
) -> (Gauge, Counter) {
    let (app, variant) = names_of(catalog, variant);
    let worker = catalog.worker(worker).map_or("", |spec| &*spec.name);
    let labels = [("worker", worker), ("app", app), ("variant", variant)];
    (
        registry.gauge(names::DRIFT_RATIO, labels),
        registry.counter(names::DRIFT_EPISODES, labels),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAND: f64 = 1.5;
    const PROFILED: Micros = Micros(1_000);

    fn kind(batch: u32) -> Kind {
        Kind {
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            batch,
        }
    }

    /// Changes that so many batches of one latency made.
    fn run(track: &mut Track, batch: u32, count: usize, us: u64) -> Vec<Change> {
        (0..count)
            .filter_map(|_| track.observe(kind(batch), PROFILED, Micros(us), BAND))
            .collect()
    }

    #[test]
    fn an_episode_is_told_of_once_and_ends() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 4, 100, 1_400), [], "inside the band");
        let left = run(&mut track, 4, 100, 1_800);
        let [Change::Left(furthest)] = left[..] else {
            panic!("{left:?}");
        };
        assert_eq!((furthest.kind.batch, furthest.profiled), (4, PROFILED));
        assert_eq!((furthest.observed, furthest.ratio), (Micros(1_800), 1.8));
        // Another size that drifts too is the same episode.
        assert_eq!(run(&mut track, 8, 100, 2_500), []);
        assert_eq!(
            run(&mut track, 4, 100, 1_000),
            [],
            "the other has not come back"
        );
        let back = run(&mut track, 8, 100, 1_000);
        assert!(matches!(back[..], [Change::Back(Some(_))]), "{back:?}");
        assert_eq!(run(&mut track, 4, 100, 1_800).len(), 1, "a second episode");
    }

    #[test]
    fn too_few_batches_and_outliers_say_nothing() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 1, WINDOW - 1, 9_000), []);
        assert_eq!(track.furthest(), None);
        let mut track = Track::default();
        for _ in 0..50 {
            assert_eq!(run(&mut track, 1, 5, 1_000), []);
            assert_eq!(run(&mut track, 1, 1, 90_000), [], "one in six");
        }
    }

    #[test]
    fn faster_drifts_as_well_and_small_differences_do_not() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 1, WINDOW, 500).len(), 1);
        let mut track = Track::default();
        let quick = |track: &mut Track, us| {
            let took = Micros(us);
            (0..WINDOW).any(|_| track.observe(kind(1), Micros(40), took, BAND).is_some())
        };
        assert!(!quick(&mut track, 89), "more than twice, but 49 us");
        assert!(quick(&mut track, 120));
    }

    #[test]
    fn the_edge_of_the_band_is_no_episode_after_another() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 1, 50, 1_510).len(), 1);
        assert_eq!(run(&mut track, 1, 50, 1_490), [], "not well inside");
        assert_eq!(run(&mut track, 1, 50, 1_440).len(), 1);
    }

    #[test]
    fn what_is_never_run_again_is_forgotten() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 7, WINDOW, 3_000).len(), 1);
        let after = run(&mut track, 1, FORGOTTEN as usize + 1, 1_000);
        assert!(matches!(after[..], [Change::Back(_)]), "{after:?}");
        assert_eq!(track.cells.len(), 1);
    }
}
