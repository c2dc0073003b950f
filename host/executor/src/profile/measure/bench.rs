//! One variant on one kind of worker, ready to be timed.

use std::sync::Arc;

use candle_core::Device;
use switchyard_core::catalog::Variant;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_core::time::Micros;
use switchyard_models::Tokenizer;

use crate::candle_executor::CandleExecutor;
use crate::cuda;
use crate::error::ExecuteError;
use crate::executor::Executor;
use crate::job::{InputTensor, InputType, Job, Row};
use crate::source::{InputSpec, LoadedModel, ModelSource, Weights};
use crate::tally;

/// Loads timed per variant; the longest counts.
const LOADS: usize = 3;

/// Stages `[from, to)` and the head of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) exit: Option<ExitId>,
}

impl Run {
    /// One stage, after which requests are parked.
    pub(super) fn stage(from: u32) -> Self {
        Self {
            from,
            to: from + 1,
            exit: None,
        }
    }
}

/// A loaded variant and an input for it.
pub(super) struct Bench {
    executor: CandleExecutor,
    app: AppId,
    variant: VariantId,
    input: Vec<InputTensor>,
    device: Device,
    /// Bytes its weights take.
    pub(super) memory_bytes: u64,
    /// The longest of the loads.
    pub(super) load: Micros,
}

// === impl Bench ===

impl Bench {
    /// Loads the variant `app` has at position `id`: once, or anew a few times to see how long it
    /// takes.
    pub(super) fn open(
        source: &Arc<dyn ModelSource>,
        device: &Device,
        app: AppId,
        id: VariantId,
        once: bool,
    ) -> Result<Self, ExecuteError> {
        let mut longest = Micros::ZERO;
        for _ in 1..if once { 1 } else { LOADS } {
            longest = longest.max(load(source, device, id)?.2);
        }
        let (weights, executor, last) = load(source, device, id)?;
        // Held already, so this reads nothing.
        let model = weights
            .load(id, device)
            .map_err(|error| ExecuteError::Cache(error.into()))?;
        Ok(Self {
            executor,
            app,
            variant: id,
            input: model
                .inputs
                .iter()
                .map(|spec| sample_input(spec, &model))
                .collect(),
            device: device.clone(),
            memory_bytes: model.bytes,
            load: longest.max(last),
        })
    }

    /// Runs stages that follow each other, the last of them with an exit's head, and gives the
    /// time that each took. Between them the requests are parked.
    pub(super) fn time(
        &mut self,
        runs: impl Iterator<Item = Run>,
        batch: u32,
        mut each: impl FnMut(Micros),
    ) -> Result<(), ExecuteError> {
        for run in runs {
            let mut job = self.job(run, batch);
            each(self.run(&mut job)?);
        }
        // After an answer nothing is parked; a run without an exit leaves its requests behind.
        for request in 0..u64::from(batch) {
            self.executor.release(RequestId(request));
        }
        Ok(())
    }

    /// Most bytes that the variant's largest batch holds beside the weights; on the CPU, inputs
    /// left out. The host's memory is counted by [`tally`], a card's by its driver.
    pub(super) fn activations(&mut self, variant: &Variant) -> Result<Option<u64>, ExecuteError> {
        let whole = Run {
            from: 0,
            to: variant.stages,
            exit: Some(variant.last_exit()),
        };
        // Buffers that live on are not the batch's.
        self.run(&mut self.job(whole, variant.max_batch))?;
        let mut job = self.job(whole, variant.max_batch);
        let device = self.device.clone();
        let (ran, peak) = match device.is_cpu() {
            true => tally::peak_of(|| self.run(&mut job)),
            false => cuda::peak_of(&device, || self.run(&mut job)),
        };
        ran?;
        Ok(peak)
    }

    fn run(&mut self, job: &mut Job) -> Result<Micros, ExecuteError> {
        let ran = self.executor.run(job);
        ran.result.map(|_| ran.compute)
    }

    fn job(&self, run: Run, batch: u32) -> Job {
        let rows = (0..u64::from(batch)).map(|request| Row {
            request: RequestId(request),
            input: (run.from == 0).then(|| self.input.clone()),
        });
        Job {
            batch: BatchId(0),
            app: self.app,
            variant: self.variant,
            from_stage: run.from,
            to_stage: run.to,
            exit: run.exit,
            rows: rows.collect(),
            soon: Soon::new(),
        }
    }
}

fn load(
    source: &Arc<dyn ModelSource>,
    device: &Device,
    id: VariantId,
) -> Result<(Arc<Weights>, CandleExecutor, Micros), ExecuteError> {
    // Of its own: weights shared with a worker that serves would seem to load at once.
    let weights = Weights::new(Arc::clone(source));
    let mut executor = CandleExecutor::new(Arc::clone(&weights), device.clone(), u64::MAX);
    let load = executor.preload(id)?;
    Ok((weights, executor, load))
}

/// Values without pattern: zeros and denormals can be faster or slower than real data. A text is
/// the longest that is not cut, which takes longest: a plan must hold for any text.
fn sample_input(spec: &InputSpec, model: &LoadedModel) -> InputTensor {
    let values = (0..spec.row_len()).map(|i| (i * 37) % 101);
    match spec.input_type {
        InputType::F32 => InputTensor::F32(values.map(|v| v as f32 / 101.0 - 0.5).collect()),
        // Small, so that they are valid as indices too.
        InputType::I64 => InputTensor::I64(values.map(|v| (v % 2) as i64).collect()),
        InputType::Bytes => InputTensor::Bytes(values.map(|v| (v % 2) as u8).collect()),
        InputType::Text => {
            let tokens = model.model.tokenizer().map_or(1, Tokenizer::max_tokens);
            // Every word is one token at least.
            InputTensor::Text("a ".repeat(tokens))
        }
    }
}
