//! A quick measurement: seconds, not minutes, through the executor that will serve.
//!
//! Workers are measured one kind at a time, each alone: when the workers together have more
//! threads than the machine has cores, serving is slower than this says.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use candle_core::Device;
use switchyard_core::catalog::{App, Variant};
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::time::Micros;
use thiserror::Error;

use super::file::{LatencyCell, Made, ModelCell, ProfileFile, SCHEMA};
use super::machine::Machine;
use super::samples::{Percentiles, make_monotone, percentiles};
use crate::candle_executor::CandleExecutor;
use crate::error::ExecuteError;
use crate::executor::Executor;
use crate::job::{InputTensor, InputType, Job, Row};
use crate::source::{InputSpec, ModelSource, Weights};
use crate::threads;

/// Loads timed per variant; the longest counts.
const LOADS: usize = 3;

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
    /// Time for everything. Exceeded only where a single repetition of every cell takes longer.
    pub budget: Duration,
    /// Batch sizes; those above a variant's largest are left out, its largest is always added.
    pub batches: Vec<u32>,
    /// Most repetitions per cell.
    pub repetitions_max: usize,
    /// Repetitions per cell while the budget lasts, even when they take more than the cell's
    /// share of it.
    pub repetitions_min: usize,
    /// The command, for the file.
    pub command: String,
}

/// How far a measurement has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureProgress<'a> {
    /// Cells measured.
    pub done: usize,
    /// Cells in all.
    pub total: usize,
    /// Worker kind being measured.
    pub kind: &'a str,
    /// Variant being measured, as `app/variant`.
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
    let cells_per_kind: usize = variants
        .iter()
        .map(|variant| runs_of(variant).len() * batches_of(variant, options).len())
        .sum();
    let mut session = Session {
        options,
        end: start + options.budget,
        done: 0,
        total: cells_per_kind * kinds.len(),
        progress,
    };
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
    for kind in kinds {
        let pool = threads::pool(&kind.name, kind.threads).map_err(|source| {
            let kind = kind.name.clone();
            MeasureError::Threads { kind, source }
        })?;
        for (i, variant) in variants.iter().enumerate() {
            let app = apps
                .get(variant.app.index())
                .map_or("", |app| app.name.as_str());
            let target = Target {
                source,
                kind,
                app,
                id: VariantId(i as u32),
                variant,
            };
            pool.install(|| session.measure(&target, &mut file))
                .map_err(|source| {
                    let kind = kind.name.clone();
                    MeasureError::Execute { kind, source }
                })?;
        }
    }
    Ok(file)
}

/// What is measured now.
struct Target<'a> {
    source: &'a Arc<dyn ModelSource>,
    kind: &'a KindToMeasure,
    app: &'a str,
    id: VariantId,
    variant: &'a Variant,
}

struct Session<'a> {
    options: &'a QuickOptions,
    end: Instant,
    done: usize,
    total: usize,
    progress: &'a mut (dyn FnMut(MeasureProgress<'_>) + Send),
}

/// Stages `[from, to)` and the head of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    from: u32,
    to: u32,
    exit: Option<ExitId>,
}

// === impl QuickOptions ===

impl QuickOptions {
    /// Eight seconds in all, batches 1 to 32, up to 40 repetitions: enough that the 95th
    /// percentile survives two interruptions by the rest of the machine.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            budget: Duration::from_secs(8),
            batches: vec![1, 2, 4, 8, 16, 32],
            repetitions_max: 40,
            repetitions_min: 3,
            command: command.into(),
        }
    }
}

// === impl Session ===

impl Session<'_> {
    fn measure(&mut self, target: &Target<'_>, file: &mut ProfileFile) -> Result<(), ExecuteError> {
        let (mut bench, load) = Bench::open(target)?;
        file.models.push(ModelCell {
            kind: target.kind.name.clone(),
            app: target.app.to_owned(),
            variant: target.variant.name.clone(),
            memory_bytes: bench.memory_bytes,
            load_us: load.0,
        });
        let name = format!("{}/{}", target.app, target.variant.name);
        for run in runs_of(target.variant) {
            let batches = batches_of(target.variant, self.options);
            let mut cells = Vec::with_capacity(batches.len());
            let mut samples = Vec::with_capacity(batches.len());
            for &batch in &batches {
                (self.progress)(MeasureProgress {
                    done: self.done,
                    total: self.total,
                    kind: &target.kind.name,
                    variant: &name,
                });
                let measured = self.measure_cell(&mut bench, run, batch)?;
                samples.push(measured.len() as u32);
                cells.push(percentiles(measured));
                self.done += 1;
            }
            make_monotone(cells.iter_mut());
            for ((batch, cell), samples) in batches.into_iter().zip(cells).zip(samples) {
                file.latencies.push(target.cell(run, batch, cell, samples));
            }
        }
        (self.progress)(MeasureProgress {
            done: self.done,
            total: self.total,
            kind: &target.kind.name,
            variant: &name,
        });
        Ok(())
    }

    /// Repeats one run within its share of what is left of the budget.
    fn measure_cell(
        &self,
        bench: &mut Bench,
        run: Run,
        batch: u32,
    ) -> Result<Vec<u64>, ExecuteError> {
        let start = Instant::now();
        let left = self.end.saturating_duration_since(start);
        let cells_left = (self.total - self.done).max(1) as u32;
        let share_end = start + left / cells_left;
        let repetitions_min = if left.is_zero() {
            1
        } else {
            // Buffers grow, pages fault and caches fill in the first run.
            bench.time(run, batch)?;
            self.options.repetitions_min.max(1)
        };
        let mut samples = Vec::new();
        loop {
            samples.push(bench.time(run, batch)?.0);
            let enough = samples.len() >= repetitions_min && Instant::now() >= share_end;
            if enough || samples.len() >= self.options.repetitions_max.max(repetitions_min) {
                return Ok(samples);
            }
        }
    }
}

// === impl Target ===

impl Target<'_> {
    fn cell(&self, run: Run, batch: u32, measured: Percentiles, samples: u32) -> LatencyCell {
        let exit = run.exit.and_then(|exit| self.variant.exit(exit));
        LatencyCell {
            kind: self.kind.name.clone(),
            app: self.app.to_owned(),
            variant: self.variant.name.clone(),
            from_stage: run.from,
            to_stage: run.to,
            exit: exit.map(|exit| exit.name.clone()),
            batch,
            samples,
            p50_us: measured.p50_us,
            p95_us: measured.p95_us,
            p99_us: measured.p99_us,
            energy_uj: None,
        }
    }
}

/// Whole runs first: they are what every policy needs. Then what prices a run that is cut into
/// stages: each stage after which requests can be parked, and each last stage with its head.
fn runs_of(variant: &Variant) -> Vec<Run> {
    let exits = (0u32..).map(ExitId).zip(&variant.exits);
    let mut runs: Vec<Run> = exits
        .clone()
        .map(|(id, exit)| Run {
            from: 0,
            to: exit.after_stage,
            exit: Some(id),
        })
        .collect();
    runs.extend((0..variant.stages.saturating_sub(1)).map(|from| Run {
        from,
        to: from + 1,
        exit: None,
    }));
    // After the first stage alone the whole run is the same as the last stage.
    runs.extend(
        exits
            .filter(|(_, exit)| exit.after_stage > 1)
            .map(|(id, exit)| Run {
                from: exit.after_stage - 1,
                to: exit.after_stage,
                exit: Some(id),
            }),
    );
    runs
}

fn batches_of(variant: &Variant, options: &QuickOptions) -> Vec<u32> {
    let mut batches: Vec<u32> = options
        .batches
        .iter()
        .copied()
        .filter(|&batch| (1..variant.max_batch).contains(&batch))
        .chain([1, variant.max_batch])
        .collect();
    batches.sort_unstable();
    batches.dedup();
    batches
}

// === one variant on one kind ===

struct Bench {
    executor: CandleExecutor,
    app: AppId,
    variant: VariantId,
    input: InputTensor,
    memory_bytes: u64,
}

// === impl Bench ===

impl Bench {
    /// Loads the variant, anew each time, and returns the longest load.
    fn open(target: &Target<'_>) -> Result<(Self, Micros), ExecuteError> {
        let mut longest = Micros::ZERO;
        for _ in 1..LOADS {
            longest = longest.max(Self::load(target)?.2);
        }
        let (weights, executor, load) = Self::load(target)?;
        // Held already, so this reads nothing.
        let model = weights
            .load(target.id, &target.kind.device)
            .map_err(|error| ExecuteError::Cache(error.into()))?;
        let bench = Self {
            executor,
            app: target.variant.app,
            variant: target.id,
            input: sample_input(&model.input),
            memory_bytes: model.bytes,
        };
        Ok((bench, longest.max(load)))
    }

    fn load(target: &Target<'_>) -> Result<(Arc<Weights>, CandleExecutor, Micros), ExecuteError> {
        // Of its own: weights shared with a worker that serves would seem to load at once.
        let weights = Weights::new(Arc::clone(target.source));
        let device = target.kind.device.clone();
        let mut executor = CandleExecutor::new(Arc::clone(&weights), device, u64::MAX);
        let load = executor.preload(target.id)?;
        Ok((weights, executor, load))
    }

    /// Runs once and returns the time of the run itself, without the stages before it.
    fn time(&mut self, run: Run, batch: u32) -> Result<Micros, ExecuteError> {
        if run.from > 0 {
            let before = Run {
                from: 0,
                to: run.from,
                exit: None,
            };
            self.run(before, batch)?;
        }
        let latency = self.run(run, batch)?;
        for request in 0..u64::from(batch) {
            self.executor.release(RequestId(request));
        }
        Ok(latency)
    }

    fn run(&mut self, run: Run, batch: u32) -> Result<Micros, ExecuteError> {
        let rows = (0..u64::from(batch)).map(|request| Row {
            request: RequestId(request),
            input: (run.from == 0).then(|| vec![self.input.clone()]),
        });
        let mut job = Job {
            batch: BatchId(0),
            app: self.app,
            variant: self.variant,
            from_stage: run.from,
            to_stage: run.to,
            exit: run.exit,
            rows: rows.collect(),
        };
        let ran = self.executor.run(&mut job);
        ran.result.map(|_| ran.compute)
    }
}

/// Values without pattern: zeros and denormals can be faster or slower than real data.
fn sample_input(spec: &InputSpec) -> InputTensor {
    let values = (0..spec.row_len()).map(|i| (i * 37) % 101);
    match spec.input_type {
        InputType::F32 => InputTensor::F32(values.map(|v| v as f32 / 101.0 - 0.5).collect()),
        // Small, so that they are valid as indices too.
        InputType::I64 => InputTensor::I64(values.map(|v| (v % 2) as i64).collect()),
        InputType::Bytes => InputTensor::Bytes(values.map(|v| (v % 2) as u8).collect()),
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::catalog::Exit;

    use super::*;

    fn variant(stages: u32, exits_after: &[u32], max_batch: u32) -> Variant {
        let exits = exits_after.iter().map(|&after_stage| Exit {
            name: format!("exit{after_stage}"),
            after_stage,
            accuracy: 0.9,
            recall: vec![0.9; 2],
        });
        Variant {
            name: "v".to_owned(),
            app: AppId(0),
            stages,
            exits: exits.collect(),
            memory_bytes: 1,
            max_batch,
        }
    }

    fn run(from: u32, to: u32, exit: Option<u32>) -> Run {
        Run {
            from,
            to,
            exit: exit.map(ExitId),
        }
    }

    #[test]
    fn whole_runs_come_first_then_stages() {
        assert_eq!(runs_of(&variant(1, &[1], 8)), [run(0, 1, Some(0))]);
        assert_eq!(
            runs_of(&variant(3, &[1, 3], 8)),
            [
                run(0, 1, Some(0)),
                run(0, 3, Some(1)),
                run(0, 1, None),
                run(1, 2, None),
                run(2, 3, Some(1)),
            ]
        );
    }

    #[test]
    fn batches_end_with_the_largest() {
        let options = QuickOptions::new("test");
        assert_eq!(batches_of(&variant(1, &[1], 1), &options), [1]);
        assert_eq!(batches_of(&variant(1, &[1], 6), &options), [1, 2, 4, 6]);
        assert_eq!(
            batches_of(&variant(1, &[1], 64), &options),
            [1, 2, 4, 8, 16, 32, 64]
        );
    }

    #[test]
    fn kinds_are_named_by_their_threads() {
        assert_eq!(kind_name(&Device::Cpu, 2), "cpu-2t");
    }
}
