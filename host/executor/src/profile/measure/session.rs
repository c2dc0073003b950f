//! The measurement of one kind of worker.

use std::time::{Duration, Instant};

use switchyard_core::catalog::Variant;
use switchyard_core::ids::VariantId;

use super::bench::Bench;
use super::cells::{Task, Tasks};
use super::{KindToMeasure, MeasureError, MeasureOptions, MeasureProgress, Subject, Watch};
use crate::error::ExecuteError;
use crate::profile::file::ModelCell;
use crate::profile::measurement::{Measurement, RunName, SampledRun};

/// How often what was measured is handed out to be kept.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// One kind, one thread pool.
pub(super) struct Session<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) kind: &'a KindToMeasure,
    pub(super) options: &'a MeasureOptions,
    /// Of all kinds together.
    pub(super) whole_start: Instant,
    /// By all kinds together, before `whole_start`.
    pub(super) spent_before: Duration,
    /// Of this kind.
    pub(super) start: Instant,
    /// What this kind has left.
    pub(super) time: Duration,
    /// Where the time goes to.
    pub(super) account: String,
    /// When it was last handed out.
    pub(super) kept: Instant,
    pub(super) watch: &'a mut dyn Watch,
}

// === impl Session ===

impl Session<'_> {
    pub(super) fn measure(&mut self, measurement: &mut Measurement) -> Result<(), MeasureError> {
        let before = measurement.spent(&self.account);
        let mut benches = self.load(measurement)?;
        let mut tasks = Tasks::new(self.subject.variants, &self.options.batches);
        self.resume(&mut tasks, measurement);
        let sampled = self.sample(&mut benches, &mut tasks, measurement, before);
        self.write(&tasks, measurement, before);
        self.watch.keep(measurement);
        sampled
    }

    fn load(&mut self, measurement: &mut Measurement) -> Result<Vec<Bench>, MeasureError> {
        let mut benches = Vec::with_capacity(self.subject.variants.len());
        let device = self
            .kind
            .device
            .open()
            .map_err(|source| MeasureError::Device {
                kind: self.kind.name.clone(),
                source,
            })?;
        for (id, variant) in (0u32..).map(VariantId).zip(self.subject.variants) {
            self.go_on(id.index())?;
            let app = self.app_of(variant).to_owned();
            let is_known = measurement.models.iter().any(|model| {
                (&model.kind, &model.app, &model.variant) == (&self.kind.name, &app, &variant.name)
            });
            let source = self.subject.source;
            let opened = Bench::open(source, &device, variant.app, id, is_known);
            let mut bench = opened.map_err(|error| self.failed(error))?;
            if !is_known {
                let activation_bytes = bench.activations(variant);
                measurement.models.push(ModelCell {
                    kind: self.kind.name.clone(),
                    app,
                    variant: variant.name.clone(),
                    memory_bytes: bench.memory_bytes,
                    activation_bytes: activation_bytes.map_err(|error| self.failed(error))?,
                    load_us: bench.load.0,
                    parameters: None,
                    stages: Some(variant.stages),
                });
            }
            benches.push(bench);
        }
        Ok(benches)
    }

    /// Every task once to warm up; then all in turn until the time is up or all are done.
    fn sample(
        &mut self,
        benches: &mut [Bench],
        tasks: &mut Tasks,
        measurement: &mut Measurement,
        before: Duration,
    ) -> Result<(), MeasureError> {
        let mut is_warm = false;
        while !is_warm || !tasks.all_done(self.options) {
            for i in 0..tasks.len() {
                let Task { variant, .. } = tasks.get(i);
                self.go_on(variant)?;
                if is_warm && self.start.elapsed() >= self.time {
                    return Ok(());
                }
                let bench = &mut benches[variant];
                let ran = if is_warm {
                    let meter = self.subject.meters.of_kind(&self.kind.name);
                    tasks.visit(i, bench, self.options, meter)
                } else {
                    tasks.warm_up(i, bench, self.options)
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

    /// Takes over what was measured before.
    fn resume(&self, tasks: &mut Tasks, measurement: &Measurement) {
        for cell in tasks.cells_mut() {
            let name = self.name_of(cell.variant, cell.run, cell.sliced);
            let same = |run: &&SampledRun| run.batch == cell.batch && run.name == name;
            if let Some(run) = measurement.runs.iter().find(same) {
                cell.cold_us = run.cold_us;
                cell.samples_us.clone_from(&run.samples_us);
                cell.metered = run.metered;
                // The first sample after a start is a warm-up again; time counts anew, and the
                // samples bound what it can be.
                cell.spent = Duration::from_micros(run.samples_us.iter().sum());
            }
        }
    }

    /// Puts what was measured in the place of what was there.
    fn write(&self, tasks: &Tasks, measurement: &mut Measurement, before: Duration) {
        let spent = before + self.start.elapsed();
        let spent_us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        measurement.spent_us.insert(self.account.clone(), spent_us);
        let names: Vec<&str> = self.subject.apps.iter().map(|a| a.name.as_str()).collect();
        let is_ours =
            |run: &SampledRun| run.name.kind == self.kind.name && names.contains(&&*run.name.app);
        measurement.runs.retain(|run| !is_ours(run));
        let measured = tasks.cells().iter().filter(|cell| cell.is_measured());
        measurement.runs.extend(measured.map(|cell| SampledRun {
            name: self.name_of(cell.variant, cell.run, cell.sliced),
            batch: cell.batch,
            cold_us: cell.cold_us,
            samples_us: cell.samples_us.clone(),
            metered: cell.metered,
        }));
    }

    fn name_of(&self, variant: usize, run: super::bench::Run, sliced: bool) -> RunName {
        let variant = &self.subject.variants[variant];
        let exit = run.exit.and_then(|exit| variant.exit(exit));
        RunName {
            kind: self.kind.name.clone(),
            app: self.app_of(variant).to_owned(),
            variant: variant.name.clone(),
            from_stage: run.from,
            to_stage: run.to,
            exit: exit.map(|exit| exit.name.clone()),
            sliced,
        }
    }

    fn app_of(&self, variant: &Variant) -> &str {
        let app = self.subject.apps.get(variant.app.index());
        app.map_or("", |app| app.name.as_str())
    }

    /// Tells where it is, and hears whether to go on.
    fn go_on(&mut self, variant: usize) -> Result<(), MeasureError> {
        let budget = self.options.budget.as_secs_f64();
        let spent = (self.spent_before + self.whole_start.elapsed()).as_secs_f64();
        self.watch.progress(MeasureProgress {
            share: if budget > 0.0 {
                (spent / budget).min(1.0)
            } else {
                1.0
            },
            kind: &self.kind.name,
            variant: &self.subject.variants[variant].name,
        });
        if self.watch.is_cancelled() {
            return Err(MeasureError::Cancelled);
        }
        Ok(())
    }

    fn failed(&self, source: ExecuteError) -> MeasureError {
        MeasureError::Execute {
            kind: self.kind.name.clone(),
            source,
        }
    }
}
