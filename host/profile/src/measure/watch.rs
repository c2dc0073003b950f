//! The observer of a measurement: shows progress, keeps samples, cancels.

use crate::measurement::Measurement;

/// How far a measurement has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasureProgress<'a> {
    /// Part of the budget that is spent, 0 to 1; never falls.
    pub share: f64,
    /// Worker kind being measured.
    pub kind: &'a str,
    /// Variant being measured.
    pub variant: &'a str,
}

/// Watches a measurement. Called on the thread that measures, between samples: slow methods take
/// from the budget.
pub trait MeasureWatch: Send {
    /// Called before each visit of a cell.
    fn progress(&mut self, progress: MeasureProgress<'_>);

    /// Called every 5 s and at the end with all samples so far, so that a later measurement can
    /// continue after an interruption.
    fn keep(&mut self, _measurement: &Measurement) {}

    /// Whether to stop at the next sample.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl<F: FnMut(MeasureProgress<'_>) + Send> MeasureWatch for F {
    fn progress(&mut self, progress: MeasureProgress<'_>) {
        self(progress);
    }
}
