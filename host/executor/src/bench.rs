//! Measuring with candle: variants of a source on kinds of workers.

use std::fmt;
use std::sync::Arc;

use candle_core::Device;
use switchyard_core::catalog::Variant;
use switchyard_core::ids::{AppId, BatchId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use switchyard_models::Tokenizer;
use switchyard_profile::{Bench, BenchError, KindBench, Lengths, StageRange, VariantLoad};

use crate::allocator;
use crate::candle_executor::CandleExecutor;
use crate::cuda;
use crate::device::DeviceName;
use crate::energy::{EnergyMeter, Meters};
use crate::error::ExecuteError;
use crate::executor::Executor;
use crate::job::{Job, JobRow, RowTensors};
use crate::pool::pool;
use crate::sample::sample_input;
use crate::sizes::{open_values, sizes};
use crate::source::{InputSpec, LoadedModel, ModelSource};
use crate::weights::Weights;

/// A kind of worker to measure.
#[derive(Clone, Debug)]
pub struct KindToMeasure {
    /// Its [name](DeviceName::kind) in the profile.
    pub name: String,
    /// The device that computes.
    pub device: DeviceName,
    /// Threads that compute.
    pub threads: usize,
    /// Builds the executor of a kind on other machines; `None`: this process computes.
    pub build: Option<BuildBenched>,
}

/// Builds an executor to measure. An error is the reason why there is none.
#[derive(Clone)]
pub struct BuildBenched(pub Arc<BuildFn>);

/// The function of a [`BuildBenched`].
pub type BuildFn = dyn Fn() -> Result<Box<dyn Executor>, String> + Send + Sync;

impl fmt::Debug for BuildBenched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuildBenched")
    }
}

/// Runs the variants of a source through the executor that serves.
#[derive(Clone, Copy)]
pub struct CandleBench<'a> {
    /// Loads the variants. Their ids are their positions in the measured subject.
    pub source: &'a Arc<dyn ModelSource>,
    /// The kinds of workers, with different names.
    pub kinds: &'a [KindToMeasure],
    /// The machine's energy counters.
    pub meters: Meters<'a>,
}

/// One kind of worker.
struct CandleKind<'a> {
    source: &'a Arc<dyn ModelSource>,
    device: Device,
    meter: Option<&'a dyn EnergyMeter>,
    build: Option<BuildBenched>,
    /// By variant id.
    loaded: Vec<Option<BenchedVariant>>,
}

/// A loaded variant and an input for it.
struct BenchedVariant {
    executor: Box<dyn Executor>,
    app: AppId,
    variant: VariantId,
    model: Arc<LoadedModel>,
    input: RowTensors,
}

// === impl CandleBench ===

impl Bench for CandleBench<'_> {
    fn kinds(&self) -> Vec<String> {
        self.kinds.iter().map(|kind| kind.name.clone()).collect()
    }

    fn on_kind<R: Send>(
        &self,
        kind: &str,
        work: impl FnOnce(&mut dyn KindBench) -> R + Send,
    ) -> Result<R, BenchError> {
        let known = self.kinds.iter().find(|known| known.name == kind);
        let known = known.ok_or_else(|| format!("kind {kind} is not one of this bench"))?;
        let pool = pool(kind, known.threads, &[])?;
        pool.install(|| {
            let mut bench = CandleKind {
                source: self.source,
                device: known.device.open()?,
                meter: self.meters.of_kind(kind, known.device),
                build: known.build.clone(),
                loaded: Vec::new(),
            };
            Ok(work(&mut bench))
        })
    }
}

// === impl CandleKind ===

impl CandleKind<'_> {
    fn loaded(&mut self, id: VariantId) -> Result<&mut BenchedVariant, BenchError> {
        let loaded = self.loaded.get_mut(id.index()).and_then(Option::as_mut);
        loaded.ok_or_else(|| format!("{}: is not loaded", self.source.name(id)).into())
    }
}

impl KindBench for CandleKind<'_> {
    fn load(&mut self, id: VariantId, variant: &Variant) -> Result<VariantLoad, BenchError> {
        if self.loaded.len() <= id.index() {
            self.loaded.resize_with(id.index() + 1, || None);
        }
        self.loaded[id.index()] = None;
        // Weights of its own: a load of weights that another worker holds takes no time.
        let weights = Weights::new(Arc::clone(self.source));
        let mut executor: Box<dyn Executor> = match &self.build {
            Some(build) => (build.0)()?,
            None => Box::new(CandleExecutor::new(
                Arc::clone(&weights),
                self.device.clone(),
                u64::MAX,
            )),
        };
        let time = executor.preload(id)?;
        // A local executor holds it, so this reads nothing.
        let model = weights.load(id, &self.device)?;
        self.loaded[id.index()] = Some(BenchedVariant {
            executor,
            app: variant.app,
            variant: id,
            input: sample(&model, model.model.typical_tokens()),
            model,
        });
        Ok(VariantLoad {
            // The catalog has one size of a variant; that of narrow weights differs between devices.
            memory_bytes: self.source.memory_bytes(id)?,
            time,
        })
    }

    fn cuts(&self) -> bool {
        let mut loaded = self.loaded.iter().flatten();
        loaded.all(|variant| variant.executor.runs_stages())
    }

    fn run(
        &mut self,
        id: VariantId,
        ranges: &[StageRange],
        batch: u32,
        report: &mut dyn FnMut(Micros),
    ) -> Result<(), BenchError> {
        let loaded = self.loaded(id)?;
        for &range in ranges {
            let mut job = loaded.job(range, batch);
            report(loaded.run(&mut job)?);
        }
        // After an answer nothing is parked; a range without an exit leaves its requests parked.
        for request in 0..u64::from(batch) {
            loaded.executor.release(RequestId(request));
        }
        Ok(())
    }

    fn lengths(&mut self, id: VariantId) -> Result<Option<Lengths>, BenchError> {
        let model = &self.loaded(id)?.model;
        if let Some(tokenizer) = model.model.tokenizer() {
            let typical = model.model.typical_tokens();
            return Ok(Some(Lengths::up_to(typical, tokenizer.max_tokens())));
        }
        let of = |inputs: &[InputSpec]| open_values(&filled(inputs, ""));
        let all: Vec<u32> = sizes(&model.inputs).iter().map(|it| of(it)).collect();
        let typical = of(&model.inputs);
        Ok((!all.is_empty()).then_some(Lengths { typical, all }))
    }

    fn run_length(
        &mut self,
        id: VariantId,
        range: StageRange,
        length: u32,
    ) -> Result<Micros, BenchError> {
        let loaded = self.loaded(id)?;
        let mut job = loaded.job(range, 1);
        for row in &mut job.rows {
            row.input = Some(sample_of(&loaded.model, length)?);
        }
        Ok(loaded.run(&mut job)?)
    }

    /// The host's memory is counted by [`allocator`], a GPU's by its driver.
    fn peak_bytes(
        &mut self,
        id: VariantId,
        range: StageRange,
        batch: u32,
    ) -> Result<Option<u64>, BenchError> {
        if self.build.is_some() {
            return Ok(None);
        }
        let device = self.device.clone();
        let loaded = self.loaded(id)?;
        switchyard_models::without_kept(|| {
            loaded.run(&mut loaded.job(range, batch))?;
            let mut job = loaded.job(range, batch);
            let (ran, peak) = match device.is_cpu() {
                true => allocator::peak_of(|| loaded.run(&mut job)),
                false => cuda::peak_of(&device, || loaded.run(&mut job)),
            };
            ran?;
            Ok(peak)
        })
    }

    fn energy_uj(&self) -> Option<u64> {
        self.meter.and_then(EnergyMeter::total_uj)
    }
}

/// Inputs of a request whose text, or pair of texts, has this many tokens.
fn sample(model: &LoadedModel, tokens: usize) -> RowTensors {
    // A word is one token at least, and so is each special one.
    let tokenizer = model.model.tokenizer();
    let special = tokenizer.map_or(0, Tokenizer::special_tokens);
    let words = tokens.saturating_sub(special) / tokenizer.map_or(1, Tokenizer::texts);
    filled(&model.inputs, &"a ".repeat(words.max(1)))
}

fn filled(inputs: &[InputSpec], text: &str) -> RowTensors {
    inputs.iter().map(|spec| sample_input(spec, text)).collect()
}

/// Inputs of a request of this length, one of [`KindBench::lengths`].
fn sample_of(model: &LoadedModel, length: u32) -> Result<RowTensors, BenchError> {
    if model.model.tokenizer().is_some() {
        return Ok(sample(model, length as usize));
    }
    let rows = sizes(&model.inputs).into_iter();
    let mut rows = rows.map(|inputs| filled(&inputs, ""));
    let row = rows.find(|row| open_values(row) == length);
    row.ok_or_else(|| format!("{}: has no size of {length} values", model.name).into())
}

// === impl BenchedVariant ===

impl BenchedVariant {
    fn run(&mut self, job: &mut Job) -> Result<Micros, ExecuteError> {
        let outcome = self.executor.run(job);
        outcome.result.map(|_| outcome.compute)
    }

    fn job(&self, range: StageRange, batch: u32) -> Job {
        let rows = (0..u64::from(batch)).map(|request| JobRow {
            request: RequestId(request),
            input: (range.from == 0).then(|| self.input.clone()),
        });
        Job {
            batch: BatchId(0),
            app: self.app,
            variant: self.variant,
            from_stage: range.from,
            to_stage: range.to,
            exit: range.exit,
            rows: rows.collect(),
            soon: Soon::new(),
            until: None,
        }
    }
}
