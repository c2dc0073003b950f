//! Measuring, through the executor that will serve: seconds at a first start, minutes for
//! `switchyard profile`.
//!
//! All cells of a worker kind are visited in turn, again and again until the time is up, so that
//! a disturbance from outside falls on one sample of many cells and not on all samples of one.
//! Kinds are measured one after the other, each alone: when the workers together have more
//! threads than the machine has cores, serving is slower than this says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_core::catalog::{App, Variant};
use thiserror::Error;

use self::session::Session;
use super::measurement::Measurement;
use crate::device::{DeviceError, DeviceName};
use crate::energy::Meters;
use crate::error::ExecuteError;
use crate::source::ModelSource;
use crate::threads;

mod bench;
mod cells;
mod session;

/// What is measured: variants of a source on kinds of workers.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Loads the variants.
    pub source: &'a Arc<dyn ModelSource>,
    /// Apps, as the variants number them.
    pub apps: &'a [App],
    /// Positions are the ids that `source` knows.
    pub variants: &'a [Variant],
    /// Kinds of workers.
    pub kinds: &'a [KindToMeasure],
    /// What counts energy, where this machine does.
    pub meters: Meters<'a>,
}

/// A kind of worker to measure.
#[derive(Clone, Debug)]
pub struct KindToMeasure {
    /// Name in the profile, see [`kind_name`].
    pub name: String,
    /// Where it computes.
    pub device: DeviceName,
    /// Threads that compute.
    pub threads: usize,
}

/// How long and how often to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureOptions {
    /// Time for everything, loads included. Exceeded by what one run of every cell takes, when
    /// that is more.
    pub budget: Duration,
    /// Batch sizes; those above a variant's largest are left out, its largest is always added.
    pub batches: Vec<u32>,
    /// Samples from which a cell is done as soon as its median has settled.
    pub samples_min: usize,
    /// Most samples per cell.
    pub samples_max: usize,
    /// Most time for one cell, when it has a few samples.
    pub cell_max: Duration,
}

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

/// Watches a measurement, on the thread that measures: what it does should not take long.
pub trait Watch: Send {
    /// It has come so far.
    fn progress(&mut self, progress: MeasureProgress<'_>);

    /// Called every few seconds with everything there is, for whoever wants to go on with it
    /// after an interruption.
    fn keep(&mut self, _measurement: &Measurement) {}

    /// Whether to stop at the next sample.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl<F: FnMut(MeasureProgress<'_>) + Send> Watch for F {
    fn progress(&mut self, progress: MeasureProgress<'_>) {
        self(progress);
    }
}

/// Why a measurement ended before it was complete.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The operating system gave no threads for a kind.
    #[error("measuring {kind}: {source}")]
    Threads {
        /// The worker kind.
        kind: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A kind's device cannot be computed on.
    #[error("measuring {kind}: {source}")]
    Device {
        /// The worker kind.
        kind: String,
        /// What is wrong with it.
        source: DeviceError,
    },
    /// A variant could not be loaded or run.
    #[error("measuring {kind}: {source}")]
    Execute {
        /// The worker kind.
        kind: String,
        /// What failed; names the variant.
        source: ExecuteError,
    },
    /// Whoever watches wanted it to stop.
    #[error("the measurement was interrupted")]
    Cancelled,
}

/// Name of the kind of worker that computes with these threads on this device: `cpu-2t`,
/// `cuda-h200`.
pub fn kind_name(device: DeviceName, threads: usize) -> String {
    device.kind(threads)
}

/// Measures load time, memory, whole runs to each exit and single stages, for each kind, variant
/// and batch, and adds it all to `measurement`. What is there already is not measured again.
///
/// # Errors
/// A variant cannot be loaded or run, there are no threads, or `watch` wants it to stop; what was
/// measured until then is in `measurement`.
pub fn measure(
    subject: Subject<'_>,
    options: &MeasureOptions,
    measurement: &mut Measurement,
    watch: &mut dyn Watch,
) -> Result<(), MeasureError> {
    let kinds = subject.kinds;
    let share = options.budget / u32::try_from(kinds.len()).unwrap_or(1).max(1);
    let spent_before: Duration = kinds
        .iter()
        .map(|kind| measurement.spent(&account(subject, kind)))
        .sum();
    let start = Instant::now();
    for kind in kinds {
        let name = kind.name.clone();
        let pool = match threads::pool(&name, kind.threads, &[]) {
            Ok(pool) => pool,
            Err(source) => return Err(MeasureError::Threads { kind: name, source }),
        };
        let account = account(subject, kind);
        let mut session = Session {
            subject,
            kind,
            options,
            whole_start: start,
            spent_before,
            start: Instant::now(),
            time: share.saturating_sub(measurement.spent(&account)),
            account,
            kept: Instant::now(),
            watch,
        };
        pool.install(|| session.measure(measurement))?;
    }
    Ok(())
}

/// Under which name a kind's time is kept: pools may have the same kinds, but no app is in two.
fn account(subject: Subject<'_>, kind: &KindToMeasure) -> String {
    let apps: Vec<&str> = subject.apps.iter().map(|app| app.name.as_str()).collect();
    format!("{}: {}", kind.name, apps.join(", "))
}

// === impl MeasureOptions ===

impl MeasureOptions {
    /// Six seconds in all, batches 1 to 32, up to 40 samples: enough that the 95th percentile
    /// survives two interruptions by the rest of the machine.
    pub fn quick() -> Self {
        Self {
            budget: Duration::from_secs(6),
            batches: vec![1, 2, 4, 8, 16, 32],
            samples_min: 40,
            samples_max: 40,
            cell_max: Duration::from_secs(1),
        }
    }

    /// Up to 400 samples, so that the 99th percentile is not simply the largest.
    pub fn thorough(budget: Duration) -> Self {
        Self {
            budget,
            samples_min: 100,
            samples_max: 400,
            cell_max: Duration::from_secs(8),
            ..Self::quick()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_by_their_threads() {
        assert_eq!(kind_name(DeviceName::Cpu, 2), "cpu-2t");
    }
}
