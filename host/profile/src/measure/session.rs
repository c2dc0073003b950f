//! The measurement of one kind of worker.

use std::time::{Duration, Instant};

use switchyard_core::catalog::Variant;
use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;

use super::bench::{BenchError, KindBench, StageRange, VariantLoad};
use super::cell::MeasuredCell;
use super::error::MeasureError;
use super::lengths::measure_lengths;
use super::options::MeasureOptions;
use super::subject::MeasureSubject;
use super::tasks::SamplingTasks;
use super::watch::{MeasureProgress, MeasureWatch};
use crate::measurement::{CellName, Measurement, SampledCell};
use crate::schema::ModelCell;

/// How often the watch is given all samples to keep.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// Loads that are timed per variant; the longest counts.
const LOADS: usize = 3;

/// One kind of worker.
pub(super) struct KindSession<'a> {
    pub(super) subject: MeasureSubject<'a>,
    pub(super) kind: &'a str,
    pub(super) options: &'a MeasureOptions,
    /// Start of the measurement of all kinds.
    pub(super) whole_start: Instant,
    /// Time that all kinds spent before `whole_start`.
    pub(super) spent_before: Duration,
    /// Start of the measurement of this kind.
    pub(super) start: Instant,
    /// Time that this kind has left.
    pub(super) time: Duration,
    /// The account of this kind's time.
    pub(super) account: String,
    /// When the watch was last given the samples.
    pub(super) kept: Instant,
    pub(super) watch: &'a mut dyn MeasureWatch,
}

// === impl KindSession ===

impl KindSession<'_> {
    pub(super) fn measure(
        &mut self,
        bench: &mut dyn KindBench,
        measurement: &mut Measurement,
    ) -> Result<(), MeasureError> {
        let before = measurement.spent(&self.account);
        self.load(bench, measurement)?;
        let mut tasks =
            SamplingTasks::new(self.subject.variants, &self.options.batches, bench.cuts());
        self.resume(&mut tasks, measurement);
        let sampled = self.sample(bench, &mut tasks, measurement, before);
        self.write(&tasks, measurement, before);
        self.watch.keep(measurement);
        sampled
    }

    fn load(
        &mut self,
        bench: &mut dyn KindBench,
        measurement: &mut Measurement,
    ) -> Result<(), MeasureError> {
        for (id, variant) in (0u32..).map(VariantId).zip(self.subject.variants) {
            self.check_watch(id)?;
            let app = self.subject.app_of(variant).to_owned();
            let is_known = measurement.models.iter().any(|model| {
                (&*model.kind, &model.app, &model.variant) == (self.kind, &app, &variant.name)
            });
            let loads = if is_known { 1 } else { LOADS };
            let load = longest_load(bench, id, variant, loads);
            let load = load.map_err(|error| self.failed(error))?;
            if is_known {
                continue;
            }
            let whole = StageRange {
                from: 0,
                to: variant.stages,
                exit: Some(variant.last_exit()),
            };
            let activation_bytes = bench.peak_bytes(id, whole, variant.max_batch);
            let lengths = measure_lengths(bench, (self.kind, &app), (id, variant));
            let lengths = lengths.map_err(|error| self.failed(error))?;
            measurement.lengths.extend(lengths);
            measurement.models.push(ModelCell {
                kind: self.kind.to_owned(),
                app,
                variant: variant.name.clone(),
                memory_bytes: load.memory_bytes,
                activation_bytes: activation_bytes.map_err(|error| self.failed(error))?,
                load_us: load.time.0,
                parameters: None,
                stages: Some(variant.stages),
                engine: None,
            });
        }
        Ok(())
    }

    /// Warms every task up, then visits all in turn until the time is up or all are done.
    fn sample(
        &mut self,
        bench: &mut dyn KindBench,
        tasks: &mut SamplingTasks,
        measurement: &mut Measurement,
        before: Duration,
    ) -> Result<(), MeasureError> {
        let mut is_warm = false;
        while !is_warm || !tasks.all_done(self.options) {
            for task in 0..tasks.len() {
                self.check_watch(tasks.variant(task))?;
                if is_warm && self.start.elapsed() >= self.time {
                    return Ok(());
                }
                let ran = if is_warm {
                    tasks.visit(task, bench, self.options)
                } else {
                    tasks.warm_up(task, bench, self.options)
                };
                ran.map_err(|error| self.failed(error))?;
                if self.kept.elapsed() >= KEEP_EVERY {
                    self.kept = Instant::now();
                    self.write(tasks, measurement, before);
                    self.watch.keep(measurement);
                }
            }
            is_warm = true;
        }
        Ok(())
    }

    /// Takes over the samples of an interrupted measurement.
    fn resume(&self, tasks: &mut SamplingTasks, measurement: &Measurement) {
        for cell in tasks.cells_mut() {
            let name = self.name_of(cell);
            let is_same = |known: &&SampledCell| known.batch == cell.batch && known.name == name;
            if let Some(known) = measurement.cells.iter().find(is_same) {
                cell.cold_us = known.cold_us;
                cell.samples_us.clone_from(&known.samples_us);
                cell.metered = known.metered;
                // As `MeasuredCell::add` counts it: without warm-ups.
                cell.spent = Duration::from_micros(known.samples_us.iter().sum());
            }
        }
    }

    /// Replaces this kind's cells in `measurement` by the tasks' cells.
    fn write(&self, tasks: &SamplingTasks, measurement: &mut Measurement, before: Duration) {
        let spent = before + self.start.elapsed();
        let spent_us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        measurement.spent_us.insert(self.account.clone(), spent_us);
        let apps: Vec<&str> = self.subject.apps.iter().map(|a| a.name.as_str()).collect();
        let is_ours =
            |cell: &SampledCell| cell.name.kind == self.kind && apps.contains(&&*cell.name.app);
        measurement.cells.retain(|cell| !is_ours(cell));
        let measured = tasks.cells().iter().filter(|cell| cell.is_measured());
        measurement.cells.extend(measured.map(|cell| SampledCell {
            name: self.name_of(cell),
            batch: cell.batch,
            cold_us: cell.cold_us,
            samples_us: cell.samples_us.clone(),
            metered: cell.metered,
        }));
    }

    fn name_of(&self, cell: &MeasuredCell) -> CellName {
        let variant = &self.subject.variants[cell.variant.index()];
        let exit = cell.range.exit.and_then(|exit| variant.exit(exit));
        CellName {
            kind: self.kind.to_owned(),
            app: self.subject.app_of(variant).to_owned(),
            variant: variant.name.clone(),
            from_stage: cell.range.from,
            to_stage: cell.range.to,
            exit: exit.map(|exit| exit.name.clone()),
            sliced: cell.sliced,
        }
    }

    /// Reports progress to the watch, which may cancel.
    fn check_watch(&mut self, variant: VariantId) -> Result<(), MeasureError> {
        let budget = self.options.budget.as_secs_f64();
        let spent = (self.spent_before + self.whole_start.elapsed()).as_secs_f64();
        self.watch.progress(MeasureProgress {
            share: if budget > 0.0 {
                (spent / budget).min(1.0)
            } else {
                1.0
            },
            kind: self.kind,
            variant: &self.subject.variants[variant.index()].name,
        });
        if self.watch.is_cancelled() {
            return Err(MeasureError::Cancelled);
        }
        Ok(())
    }

    fn failed(&self, source: BenchError) -> MeasureError {
        MeasureError::bench(self.kind, source)
    }
}

fn longest_load(
    bench: &mut dyn KindBench,
    id: VariantId,
    variant: &Variant,
    loads: usize,
) -> Result<VariantLoad, BenchError> {
    let mut longest = Micros::ZERO;
    for _ in 1..loads {
        longest = longest.max(bench.load(id, variant)?.time);
    }
    let last = bench.load(id, variant)?;
    Ok(VariantLoad {
        time: longest.max(last.time),
        ..last
    })
}
