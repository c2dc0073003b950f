//! Measuring, through the executor that serves: seconds at a first start, minutes for
//! `switchyard profile`.
//!
//! All cells of a worker kind are visited in turn, again and again until the time is up. So a
//! disturbance from another program falls on one sample of many cells instead of all samples of
//! one. Kinds are measured one after the other, each alone: if the workers together have more
//! threads than the machine has cores, serving is slower than the profile.

use std::time::{Duration, Instant};

mod bench;
mod cell;
mod error;
mod lengths;
mod options;
mod ranges;
mod session;
mod subject;
mod tasks;
mod watch;

pub use bench::{Bench, BenchError, KindBench, Lengths, StageRange, VariantLoad};
pub use error::MeasureError;
pub use options::MeasureOptions;
pub use subject::MeasureSubject;
pub use watch::{MeasureProgress, MeasureWatch};

use self::session::KindSession;
use crate::measurement::Measurement;

/// Measures load time, memory, all stages to each exit and single stages, for each kind, variant
/// and batch, and adds them to `measurement`. Cells that it has already are not measured again.
///
/// # Errors
/// The bench cannot load or run a variant, or `watch` cancels; `measurement` keeps the samples
/// until then.
pub fn measure<B: Bench>(
    subject: MeasureSubject<'_>,
    bench: &B,
    options: &MeasureOptions,
    measurement: &mut Measurement,
    watch: &mut dyn MeasureWatch,
) -> Result<(), MeasureError> {
    let kinds = bench.kinds();
    let share = options.budget / u32::try_from(kinds.len()).unwrap_or(1).max(1);
    let spent_before: Duration = kinds
        .iter()
        .map(|kind| measurement.spent(&subject.account(kind)))
        .sum();
    let whole_start = Instant::now();
    for kind in &kinds {
        let account = subject.account(kind);
        let mut session = KindSession {
            subject,
            kind,
            options,
            whole_start,
            spent_before,
            start: Instant::now(),
            time: share.saturating_sub(measurement.spent(&account)),
            account,
            kept: Instant::now(),
            watch,
        };
        let measured = bench.on_kind(kind, |bench| session.measure(bench, measurement));
        measured.map_err(|source| MeasureError::bench(kind, source))??;
    }
    Ok(())
}
