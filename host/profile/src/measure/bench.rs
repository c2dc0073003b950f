//! The seam to an executor: it loads variants, runs them, and reports time, energy and memory.

use switchyard_core::catalog::Variant;
use switchyard_core::ids::{ExitId, VariantId};
use switchyard_core::time::Micros;

/// The shortest length that is measured.
const SHORTEST: usize = 8;

/// Why a kind is not available, or a variant cannot be loaded or run. Names the variant.
pub type BenchError = Box<dyn std::error::Error + Send + Sync>;

/// Kinds of workers to measure variants on.
pub trait Bench {
    /// Names of the kinds, in the order in which they are measured.
    fn kinds(&self) -> Vec<String>;

    /// Calls `work` once, on the threads that workers of this kind compute with, and returns its
    /// result. Variants that `work` loads are unloaded afterwards.
    ///
    /// # Errors
    /// The kind's threads or device are not available; `work` was not called.
    fn on_kind<R: Send>(
        &self,
        kind: &str,
        work: impl FnOnce(&mut dyn KindBench) -> R + Send,
    ) -> Result<R, BenchError>;
}

/// One kind of worker to measure variants on.
pub trait KindBench {
    /// Loads a variant anew; a load before this one is dropped first.
    ///
    /// # Errors
    /// The variant cannot be loaded.
    fn load(&mut self, id: VariantId, variant: &Variant) -> Result<VariantLoad, BenchError>;

    /// Whether it begins after the first stage and parks requests between stages. Otherwise only all
    /// stages to an exit are measured.
    fn cuts(&self) -> bool {
        true
    }

    /// Runs stage ranges of a loaded variant, each of which begins where the one before it ends, on
    /// a batch of `batch` requests, and reports the time of each range. Requests are parked between
    /// the ranges. None is parked afterwards.
    ///
    /// # Errors
    /// The variant cannot be run.
    fn run(
        &mut self,
        id: VariantId,
        ranges: &[StageRange],
        batch: u32,
        report: &mut dyn FnMut(Micros),
    ) -> Result<(), BenchError>;

    /// The lengths at which to measure a loaded variant; `None` if all requests are equally long.
    ///
    /// # Errors
    /// The variant is not loaded.
    fn lengths(&mut self, _id: VariantId) -> Result<Option<Lengths>, BenchError> {
        Ok(None)
    }

    /// Runs a loaded variant on one request of this length.
    ///
    /// # Errors
    /// The variant cannot be run, or its requests are all equally long.
    fn run_length(
        &mut self,
        _id: VariantId,
        _range: StageRange,
        _length: u32,
    ) -> Result<Micros, BenchError> {
        Err("its requests are all equally long".into())
    }

    /// The most bytes that one batch holds while it runs, without weights and, on the CPU, without
    /// inputs. Runs the batch twice: buffers that outlive the first one are not the batch's.
    /// `None` if nothing counts the memory.
    ///
    /// # Errors
    /// The variant cannot be run.
    fn peak_bytes(
        &mut self,
        id: VariantId,
        range: StageRange,
        batch: u32,
    ) -> Result<Option<u64>, BenchError>;

    /// Energy that the kind's processor has drawn since a fixed moment, in microjoules. `None` if
    /// nothing counts it.
    fn energy_uj(&self) -> Option<u64>;
}

/// A load of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantLoad {
    /// Bytes its weights take, as in the catalog.
    pub memory_bytes: u64,
    /// Time until it was resident.
    pub time: Micros,
}

/// Stages `[from, to)`, then the head of an exit. Without an exit requests are parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageRange {
    /// First stage.
    pub from: u32,
    /// One past the last stage.
    pub to: u32,
    /// The exit whose head answers.
    pub exit: Option<ExitId>,
}

/// The lengths at which a variant is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The length of the requests in all other cells.
    pub typical: u32,
    /// All of them, ascending.
    pub all: Vec<u32>,
}

// === impl Lengths ===

impl Lengths {
    /// Powers of two up to the longest, the longest, and the typical one.
    pub fn up_to(typical: usize, longest: usize) -> Self {
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let powers = std::iter::successors(Some(SHORTEST), |power| power.checked_mul(2));
        let mut all: Vec<u32> = powers
            .take_while(|&power| power < longest)
            .chain([typical.min(longest), longest])
            .map(length)
            .collect();
        all.sort_unstable();
        all.dedup();
        Self {
            typical: length(typical.min(longest)),
            all,
        }
    }
}

// === impl StageRange ===

impl StageRange {
    /// One stage, after which requests are parked.
    pub(super) fn single(stage: u32) -> Self {
        Self {
            from: stage,
            to: stage + 1,
            exit: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_powers_of_two_with_the_typical_and_the_longest() {
        let lengths = Lengths::up_to(64, 300);
        assert_eq!(
            (lengths.typical, lengths.all),
            (64, vec![8, 16, 32, 64, 128, 256, 300])
        );
        let short = Lengths::up_to(64, 12);
        assert_eq!((short.typical, short.all), (12, vec![8, 12]));
    }
}
