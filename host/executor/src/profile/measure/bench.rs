//! One variant on one kind of worker, ready to be timed.

use std::sync::Arc;

use candle_core::Device;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::time::Micros;
use switchyard_models::Tokenizer;

use crate::candle_executor::CandleExecutor;
use crate::error::ExecuteError;
use crate::executor::Executor;
use crate::job::{InputTensor, InputType, Job, Row};
use crate::source::{InputSpec, LoadedModel, ModelSource, Weights};

/// Loads timed per variant; the longest counts.
const LOADS: usize = 3;

/// Stages `[from, to)` and the head of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) exit: Option<ExitId>,
}

/// A loaded variant and an input for it.
pub(super) struct Bench {
    executor: CandleExecutor,
    app: AppId,
    variant: VariantId,
    input: Vec<InputTensor>,
    /// Bytes its weights take.
    pub(super) memory_bytes: u64,
    /// The longest of the loads.
    pub(super) load: Micros,
}

// === impl Bench ===

impl Bench {
    /// Loads the variant `app` has at position `id`, anew each time.
    pub(super) fn open(
        source: &Arc<dyn ModelSource>,
        device: &Device,
        app: AppId,
        id: VariantId,
    ) -> Result<Self, ExecuteError> {
        let mut longest = Micros::ZERO;
        for _ in 1..LOADS {
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
            memory_bytes: model.bytes,
            load: longest.max(last),
        })
    }

    /// Runs once and returns the time of the run itself, without the stages before it.
    pub(super) fn time(&mut self, run: Run, batch: u32) -> Result<Micros, ExecuteError> {
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
            input: (run.from == 0).then(|| self.input.clone()),
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
