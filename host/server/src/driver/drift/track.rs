//! One variant on one worker: the medians of its last batches next to the profile's.

use switchyard_core::ids::ExitId;
use switchyard_core::time::Micros;

/// Batches of one kind in a median. With fewer there is no median.
const WINDOW: usize = 16;

/// Smaller differences count as none: they decide no deadline, and the profile's own samples are no
/// more exact.
const NOTICEABLE_US: u64 = 50;

/// The part of the band in which an episode ends, so that a ratio at the edge of the band is one
/// episode.
const BACK: f64 = 0.9;

/// Batches of the worker and variant after which a kind of batch without a new batch is forgotten:
/// nothing else would bring it back into the band.
const FORGOTTEN: u64 = 512;

/// One variant on one worker.
#[derive(Default)]
pub(super) struct Track {
    cells: Vec<Cell>,
    batches: u64,
    is_out: bool,
}

/// One kind of batch.
struct Cell {
    kind: Kind,
    profiled: Micros,
    /// The last latencies in microseconds; the next one goes to `next % WINDOW`.
    observed_us: [u64; WINDOW],
    next: u64,
    /// Their median and the profile's; `None` before there are enough.
    compared: Option<Furthest>,
    /// The track's count at the last batch.
    last: u64,
}

/// Batches that compare with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) from_stage: u32,
    pub(super) to_stage: u32,
    pub(super) exit: Option<ExitId>,
    pub(super) batch: u32,
}

/// The kind of batch that is furthest from the profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Furthest {
    pub(super) kind: Kind,
    pub(super) profiled: Micros,
    pub(super) observed: Micros,
    /// Observed over profiled.
    pub(super) ratio: f64,
}

/// A change of a track with its last batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It drifts: an episode begins.
    Left,
    /// It is as profiled again.
    Back,
}

// === impl Track ===

impl Track {
    /// Adds a batch.
    pub(super) fn observe(
        &mut self,
        kind: Kind,
        profiled: Micros,
        took: Micros,
        band: f64,
    ) -> Option<Change> {
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
            return Some(Change::Back);
        }
        if !self.is_out && away > band {
            self.is_out = true;
            return Some(Change::Left);
        }
        None
    }

    /// Whether an episode lasts.
    pub(super) fn is_out(&self) -> bool {
        self.is_out
    }

    /// The furthest of the kinds with a full window.
    pub(super) fn furthest(&self) -> Option<Furthest> {
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
    /// At least 1: faster counts as slower does.
    pub(super) fn away(self) -> f64 {
        self.ratio.max(1.0 / self.ratio)
    }
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

    /// The changes that `count` batches of one latency made.
    fn run(track: &mut Track, batch: u32, count: usize, us: u64) -> Vec<Change> {
        (0..count)
            .filter_map(|_| track.observe(kind(batch), PROFILED, Micros(us), BAND))
            .collect()
    }

    #[test]
    fn an_episode_begins_once_and_ends() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 4, 100, 1_400), [], "inside the band");
        assert_eq!(run(&mut track, 4, 100, 1_800), [Change::Left]);
        let furthest = track.furthest().unwrap();
        assert_eq!((furthest.kind.batch, furthest.profiled), (4, PROFILED));
        assert_eq!((furthest.observed, furthest.ratio), (Micros(1_800), 1.8));
        // Another size that drifts too is the same episode.
        assert_eq!(run(&mut track, 8, 100, 2_500), []);
        assert_eq!(
            run(&mut track, 4, 100, 1_000),
            [],
            "the other has not come back"
        );
        assert_eq!(run(&mut track, 8, 100, 1_000), [Change::Back]);
        assert_eq!(run(&mut track, 4, 100, 1_800).len(), 1, "a second episode");
    }

    #[test]
    fn too_few_batches_and_outliers_are_no_drift() {
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
    fn a_ratio_at_the_edge_of_the_band_is_one_episode() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 1, 50, 1_510).len(), 1);
        assert_eq!(run(&mut track, 1, 50, 1_490), [], "not well inside");
        assert_eq!(run(&mut track, 1, 50, 1_440).len(), 1);
    }

    #[test]
    fn a_kind_that_never_runs_again_is_forgotten() {
        let mut track = Track::default();
        assert_eq!(run(&mut track, 7, WINDOW, 3_000).len(), 1);
        let after = run(&mut track, 1, FORGOTTEN as usize + 1, 1_000);
        assert_eq!(after, [Change::Back]);
        assert_eq!(track.cells.len(), 1);
    }
}
