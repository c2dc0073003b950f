//! A quick measurement: seconds, not minutes, through the executor that will serve.
//!
//! All cells of a worker kind are visited in turn, again and again until the time is up, so that
//! a disturbance from outside falls on one sample of many cells and not on all samples of one.
//! Kinds are measured one after the other, each alone: when the workers together have more
//! threads than the machine has cores, serving is slower than this says.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use candle_core::Device;
use switchyard_core::catalog::{App, Variant};
use switchyard_core::ids::VariantId;
use thiserror::Error;

use self::bench::Bench;
use self::cells::Cell;
use super::file::{LatencyCell, Made, ModelCell, ProfileFile, SCHEMA};
use super::machine::Machine;
use super::samples::{Percentiles, make_monotone, percentiles};
use crate::error::ExecuteError;
use crate::source::ModelSource;
use crate::threads;

mod bench;
mod cells;

/// A kind of worker to measure.
#[derive(Clone, Debug)]
pub struct KindToMeasure {
    /// Name in the profile, see [`kind_name`].
    pub name: String,
    /// Where it computes.
    pub device: Device,
    /// Threads that compute.
    pub threads: usize,
}

/// How long and how often to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuickOptions {
    /// Time for everything, loads included. Exceeded by what one run of every cell takes, when
    /// that is more.
    pub budget: Duration,
    /// Batch sizes; those above a variant's largest are left out, its largest is always added.
    pub batches: Vec<u32>,
    /// Most samples per cell.
    pub samples_max: usize,
    /// The command, for the file.
    pub command: String,
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

/// Why a measurement ended without a profile.
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
    /// A variant could not be loaded or run.
    #[error("measuring {kind}: {source}")]
    Execute {
        /// The worker kind.
        kind: String,
        /// What failed; names the variant.
        source: ExecuteError,
    },
}

/// Name of the kind of worker that computes with these threads on this device: `cpu-2t`, `cuda`,
/// `metal`.
pub fn kind_name(device: &Device, threads: usize) -> String {
    if device.is_cuda() {
        "cuda".to_owned()
    } else if device.is_metal() {
        "metal".to_owned()
    } else {
        format!("cpu-{threads}t")
    }
}

/// Measures load time, whole runs to each exit and single stages, for each kind, variant and
/// batch. Positions in `variants` are the ids that `source` knows.
///
/// # Errors
/// A variant cannot be loaded or run, or there are no threads.
pub fn measure_quick(
    source: &Arc<dyn ModelSource>,
    apps: &[App],
    variants: &[Variant],
    kinds: &[KindToMeasure],
    options: &QuickOptions,
    progress: &mut (dyn FnMut(MeasureProgress<'_>) + Send),
) -> Result<ProfileFile, MeasureError> {
    let start = Instant::now();
    let mut file = ProfileFile {
        schema: SCHEMA,
        made: Made {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: options.command.clone(),
        },
        machine: Machine::detect(),
        models: Vec::new(),
        latencies: Vec::new(),
    };
    for (i, kind) in kinds.iter().enumerate() {
        let name = kind.name.clone();
        let pool = match threads::pool(&name, kind.threads) {
            Ok(pool) => pool,
            Err(source) => return Err(MeasureError::Threads { kind: name, source }),
        };
        let share = (i + 1) as f64 / kinds.len() as f64;
        let mut session = Session {
            source,
            apps,
            variants,
            kind,
            options,
            start,
            end: start + options.budget.mul_f64(share),
            progress,
        };
        pool.install(|| session.measure(&mut file))
            .map_err(|source| MeasureError::Execute { kind: name, source })?;
    }
    Ok(file)
}

/// The measurement of one kind.
struct Session<'a> {
    source: &'a Arc<dyn ModelSource>,
    apps: &'a [App],
    variants: &'a [Variant],
    kind: &'a KindToMeasure,
    options: &'a QuickOptions,
    /// Of all kinds together.
    start: Instant,
    /// Of this kind's share of the budget.
    end: Instant,
    progress: &'a mut (dyn FnMut(MeasureProgress<'_>) + Send),
}

// === impl QuickOptions ===

impl QuickOptions {
    /// Six seconds in all, batches 1 to 32, up to 40 samples: enough that the 95th percentile
    /// survives two interruptions by the rest of the machine.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            budget: Duration::from_secs(6),
            batches: vec![1, 2, 4, 8, 16, 32],
            samples_max: 40,
            command: command.into(),
        }
    }
}

// === impl Session ===

impl Session<'_> {
    fn measure(&mut self, file: &mut ProfileFile) -> Result<(), ExecuteError> {
        let mut benches = self.load(file)?;
        let batches = &self.options.batches;
        let mut cells: Vec<Cell> = self
            .variants
            .iter()
            .enumerate()
            .flat_map(|(position, variant)| Cell::of(position, variant, batches))
            .collect();
        for cell in &mut cells {
            self.tell(cell.variant);
            cell.warm_up(&mut benches[cell.variant])?;
        }
        self.sample(&mut benches, &mut cells)?;
        self.write(cells, file);
        Ok(())
    }

    fn load(&mut self, file: &mut ProfileFile) -> Result<Vec<Bench>, ExecuteError> {
        let mut benches = Vec::with_capacity(self.variants.len());
        for (id, variant) in (0u32..).map(VariantId).zip(self.variants) {
            self.tell(id.index());
            let bench = Bench::open(self.source, &self.kind.device, variant.app, id)?;
            file.models.push(ModelCell {
                kind: self.kind.name.clone(),
                app: self.app_of(variant).to_owned(),
                variant: variant.name.clone(),
                memory_bytes: bench.memory_bytes,
                load_us: bench.load.0,
            });
            benches.push(bench);
        }
        Ok(benches)
    }

    /// Visits the cells in turn until the time is up or all have their samples.
    fn sample(&mut self, benches: &mut [Bench], cells: &mut [Cell]) -> Result<(), ExecuteError> {
        let samples_max = self.options.samples_max;
        while !cells.iter().all(|cell| cell.is_full(samples_max)) {
            for cell in &mut *cells {
                if Instant::now() >= self.end {
                    return Ok(());
                }
                self.tell(cell.variant);
                cell.visit(&mut benches[cell.variant], samples_max)?;
            }
        }
        Ok(())
    }

    fn write(&self, cells: Vec<Cell>, file: &mut ProfileFile) {
        let mut rows: Vec<(LatencyCell, Percentiles)> = cells
            .into_iter()
            .map(|cell| {
                let row = self.row(&cell);
                let samples_us = cell.into_samples_us();
                let samples = samples_us.len() as u32;
                (LatencyCell { samples, ..row }, percentiles(samples_us))
            })
            .collect();
        // A run's batches follow one another in ascending order.
        for run in rows.chunk_by_mut(|(a, _), (b, _)| a.batch < b.batch) {
            make_monotone(run.iter_mut().map(|(_, measured)| measured));
        }
        file.latencies
            .extend(rows.into_iter().map(|(row, measured)| LatencyCell {
                p50_us: measured.p50_us,
                p95_us: measured.p95_us,
                p99_us: measured.p99_us,
                ..row
            }));
    }

    /// A cell's names, without its figures.
    fn row(&self, cell: &Cell) -> LatencyCell {
        let variant = &self.variants[cell.variant];
        let exit = cell.run.exit.and_then(|exit| variant.exit(exit));
        LatencyCell {
            kind: self.kind.name.clone(),
            app: self.app_of(variant).to_owned(),
            variant: variant.name.clone(),
            from_stage: cell.run.from,
            to_stage: cell.run.to,
            exit: exit.map(|exit| exit.name.clone()),
            batch: cell.batch,
            samples: 0,
            p50_us: 0,
            p95_us: 0,
            p99_us: 0,
            energy_uj: None,
        }
    }

    fn app_of(&self, variant: &Variant) -> &str {
        let app = self.apps.get(variant.app.index());
        app.map_or("", |app| app.name.as_str())
    }

    fn tell(&mut self, variant: usize) {
        let budget = self.options.budget.as_secs_f64();
        let spent = self.start.elapsed().as_secs_f64();
        (self.progress)(MeasureProgress {
            share: if budget > 0.0 {
                (spent / budget).min(1.0)
            } else {
                1.0
            },
            kind: &self.kind.name,
            variant: &self.variants[variant].name,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_by_their_threads() {
        assert_eq!(kind_name(&Device::Cpu, 2), "cpu-2t");
    }
}
