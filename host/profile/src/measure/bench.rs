//! The seam to an executor: it loads variants, runs them, and reports time, energy and memory.

use switchyard_core::catalog::Variant;
use switchyard_core::ids::{ExitId, VariantId};
use switchyard_core::time::Micros;

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
    /// Bytes its weights take on the device.
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
